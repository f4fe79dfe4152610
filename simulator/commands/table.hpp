// A table of published measurements: each row is a scenario and what somebody measured for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rehearse {

// A collective that was measured alone, and where. What a printed table leaves open is 0 or empty.
struct MeasuredCollective {
  std::string kind;     // one of kExchangeNames
  std::string cluster;  // a preset's name
  int nodes = 0, devices = 0;
  double bytes = 0;    // as collective_time.hpp counts them
  double issue_s = 0;  // what the host takes to issue it on all devices, below which nothing is measured
  std::string algorithm = "auto";
};

struct PublishedRow {
  std::string id;
  std::string scenario;  // the text of a scenario file; of a collective: empty
  std::optional<MeasuredCollective> collective;
  // What was measured, one of them; all 0: nothing, the row is there because others scale from it.
  double measured_step_s = 0;         // of a collective: its time
  double measured_samples_per_s = 0;  // over the whole job
  // The measured time of a step that trains so many samples; 0: neither is measured.
  double step_s(double samples) const {
    return measured_samples_per_s > 0 ? samples / measured_samples_per_s : measured_step_s;
  }
  double measured_efficiency =
      0;  // a share: throughput over that of `scaling`'s smallest row, for each device
  std::string group, scaling, comparison;  // simulator/commands/statistics.hpp says what they bring together
  std::string source;
  std::string note;
};

struct MeasurementTable {
  std::string name;
  std::string path;
  std::vector<PublishedRow> rows;
  bool collectives = false;  // all rows are
};

// Columns: id, source, note, at least one of measured_step_s, measured_samples_per_s and measured_efficiency,
// then group, scaling, comparison, and for every scenario key that rows set a column named by its dotted path
// ("strategy.pipeline"); an empty cell leaves the key out. InputError for a file that is not such a table.
// read_measurements() also reads tables of collectives (collective_table.hpp).
MeasurementTable read_measurements(const std::string& path);
MeasurementTable parse_measurements(const std::string& text, const std::string& path);

// Names of the shipped tables, sorted; and where one of them, or a path to a file of one's own, lies.
std::vector<std::string> measurement_tables();
std::string measurement_path(const std::string& name);

}  // namespace rehearse
