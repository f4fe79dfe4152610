// Compares predicted with measured step times, from open runs or from the output of `rehearse validate
// --format csv`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gui/models/runs/run.hpp"
#include "gui/models/tables/csv_file.hpp"
#include "gui/models/tables/value_table.hpp"

namespace rehearse::gui {

struct AccuracyPoint {
  std::string run, topology, strategy;
  std::string table;  // name of the table of published measurements; empty for a run
  int ranks = 0;      // 0: not known
  double measured_s = 0, predicted_s = 0;
  double least_s = 0, most_s = 0;  // range of the measured steps; 0: not known
  std::string sentence;            // explains the difference
  double error() const { return predicted_s / measured_s - 1; }
};

struct AccuracyTable {
  std::vector<AccuracyPoint> points;
  std::vector<std::string> problems;
};

// Pairs each measured run with every prediction of the same scenario; ignores the settings under "run." and
// "simulation.".
AccuracyTable accuracy_of(const std::vector<std::shared_ptr<const Run>>& runs);
// Reads a table of recorded runs or of published measurements; throws InputError for any other file.
AccuracyTable accuracy_of(const CsvFile& file);

// Summary of |predicted / measured - 1|. `worst` is the error farthest from 0, with its sign.
struct Errors {
  double median = 0, worst = 0;
  std::size_t worst_at = 0;  // index into the points
};
Errors errors_of(const std::vector<AccuracyPoint>& points);  // needs at least one point
// Returns e.g. "33 runs: median error 2.1 %, worst -9.8 % (star-4-16mb-ring)."; for published tables it
// begins "148 measurements in 4 tables:".
std::string summary_of(const std::vector<AccuracyPoint>& points);

TableData rows_of(const std::vector<AccuracyPoint>& points);

}  // namespace rehearse::gui
