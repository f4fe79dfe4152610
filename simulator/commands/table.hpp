// A table of published measurements: each row is a scenario and the step time that somebody measured for it.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

struct Measurement {
  std::string id;
  std::string scenario;  // the text of a scenario file
  double measured_step_s = 0;
  std::string source;
  std::string note;
};

struct MeasurementTable {
  std::string name;
  std::string path;
  std::vector<Measurement> rows;
};

// Columns: id, measured_step_s, source, note, and for every scenario key that rows set a column named by its
// dotted path ("strategy.pipeline"); an empty cell leaves the key out. InputError for a file that is not such
// a table.
MeasurementTable read_measurements(const std::string& path);
MeasurementTable parse_measurements(const std::string& text, const std::string& path);

// Names of the shipped tables, sorted; and where one of them, or a path to a file of one's own, lies.
std::vector<std::string> measurement_tables();
std::string measurement_path(const std::string& name);

}  // namespace rehearse
