// Reads tables of published measurements: each row is a scenario and what somebody measured for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/commands/validate/measured_memory.hpp"

namespace rehearse {

// A collective that was measured alone, and where. Fields that a printed table leaves open are 0 or empty.
struct MeasuredCollective {
  std::string kind;     // one of kExchangeNames
  std::string cluster;  // name of a preset, or a path
  int nodes = 0, devices = 0, devices_per_node = 0;
  // What a printed table says of the number of ranks: the ranks that it lists, and bounds of the bus
  // bandwidth over the algorithm's bandwidth; 0: nothing.
  int listed_ranks = 0;
  double least_bus_ratio = 0, most_bus_ratio = 0;
  double bytes = 0;    // counted as in collective_time.hpp
  double issue_s = 0;  // time that the host takes to issue it on all devices, a minimum of the measured time
  std::string algorithm = "auto";
  std::string software = "nccl-tests";  // one of kSoftwareNames
};

struct PublishedRow {
  std::string id;
  std::string scenario;  // text of a scenario file; empty for a collective
  std::optional<MeasuredCollective> collective;
  // The measured time, one of the three. All 0: none was measured; the row exists for its memory, or because
  // others scale from it.
  double measured_step_s = 0;         // for a collective: its time
  double measured_samples_per_s = 0;  // over the entire job
  // Returns the measured time of a step that trains `samples`; 0 if neither of the two is measured.
  double step_s(double samples) const {
    return measured_samples_per_s > 0 ? samples / measured_samples_per_s : measured_step_s;
  }
  // A share: throughput per device divided by that of the smallest row of the same `scaling`.
  double measured_efficiency = 0;
  MeasuredMemory memory;
  std::string group, scaling, comparison;  // see simulator/commands/validate/statistics.hpp
  std::string source;
  std::string note;
};

struct MeasurementTable {
  std::string name;
  std::string path;
  std::vector<PublishedRow> rows;
  bool collectives = false;  // all rows are of collectives
};

// Parses a table. Columns: id, source, note, at least one of measured_step_s, measured_samples_per_s,
// measured_efficiency and those of memory (measured_memory.hpp), then group, scaling, comparison, and one
// column for every scenario key that rows set, named by its dotted path ("strategy.pipeline"); an empty cell
// leaves the key out. Throws InputError for a file that is not such a table. read_measurements() also reads
// tables of collectives (collective_table.hpp).
MeasurementTable read_measurements(const std::string& path);
MeasurementTable parse_measurements(const std::string& text, const std::string& path);

// Return the sorted names of the shipped tables, and the path of one of them or of the user's file `name`.
// measurement_path() throws InputError if there is neither.
std::vector<std::string> measurement_tables();
std::string measurement_path(const std::string& name);

}  // namespace rehearse
