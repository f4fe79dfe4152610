// Predicted against measured step times, of runs that are open and of `rehearse validate --format csv`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gui/models/csv_file.hpp"
#include "gui/models/run.hpp"
#include "gui/models/value_table.hpp"

namespace rehearse::gui {

struct AccuracyPoint {
  std::string run, topology, strategy;
  std::string table;  // of published measurements that it stands in; empty: a run
  int ranks = 0;      // 0: not known
  double measured_s = 0, predicted_s = 0;
  double least_s = 0, most_s = 0;  // of the measured steps; 0: not known
  std::string sentence;            // where the difference comes from
  double error() const { return predicted_s / measured_s - 1; }
};

struct AccuracyTable {
  std::vector<AccuracyPoint> points;
  std::vector<std::string> problems;
};

// Each measured run beside each prediction of the same scenario, apart from how it is run and simulated.
AccuracyTable accuracy_of(const std::vector<std::shared_ptr<const Run>>& runs);
// Of recorded runs or of published tables; InputError: of something else.
AccuracyTable accuracy_of(const CsvFile& file);

// Of |predicted / measured - 1|; worst: the one farthest from 0, with its sign.
struct Errors {
  double median = 0, worst = 0;
  std::size_t worst_at = 0;  // of the points
};
Errors errors_of(const std::vector<AccuracyPoint>& points);  // at least one
// "33 runs: median error 2.1 %, worst -9.8 % (star-4-16mb-ring)."; of tables "148 measurements in 4 tables:".
std::string summary_of(const std::vector<AccuracyPoint>& points);

TableData rows_of(const std::vector<AccuracyPoint>& points);

}  // namespace rehearse::gui
