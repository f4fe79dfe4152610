// Measures how well predictions agree with measurements: errors, scaling efficiencies, and the order of
// alternatives.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rehearse {

// One row of a table, measured and predicted. Throughputs are in samples/s over the entire job; 0: not
// measured.
struct Observation {
  std::string group;       // rows that are summarized together, such as those of a system
  std::string scaling;     // rows with the same name are one job on different numbers of devices; empty: none
  std::string comparison;  // rows with the same name are alternatives to each other; empty: none
  int devices = 1;
  double measured_per_s = 0, predicted_per_s = 0;
  double measured_efficiency = 0;  // a share, if the source prints that instead of a throughput; otherwise 0
};

// Errors of step times, predicted / measured - 1, or their absolute values.
struct ErrorSummary {
  std::size_t rows = 0;
  double mean = 0, mean_absolute = 0, median_absolute = 0;
  double worst = 0;  // the one farthest from 0, with its sign
};
double median(std::vector<double> values);  // 0 if empty
ErrorSummary summarize(const std::vector<double>& errors);

// Throughput per device divided by that of the row with the fewest devices of the same `scaling` (its base):
// 1 is linear scaling. Each share is computed from predictions only, or from measurements only.
struct Efficiency {
  std::size_t row = 0, base = 0;
  double measured = 0, predicted = 0;
  double difference() const { return predicted - measured; }
};
// Returns the efficiency of every row that has a base with fewer devices, if both are measured or the row's
// efficiency is printed.
std::vector<Efficiency> scaling_efficiencies(const std::vector<Observation>& rows);

// Two alternatives whose measured throughputs differ by more than `threshold` of the smaller one.
struct Comparison {
  std::size_t faster = 0, slower = 0;  // rows, by measured throughput
  bool right = false;                  // the predictions have the same order
};
std::vector<Comparison> compared_orders(const std::vector<Observation>& rows, double threshold = 0.05);

// Returns the mean of the efficiencies' absolute differences; 0 if there are none.
double mean_difference(const std::vector<Efficiency>& efficiencies);

}  // namespace rehearse
