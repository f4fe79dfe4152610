// Predictions of a table of measurements, and its writers.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "simulator/commands/statistics.hpp"
#include "simulator/commands/table.hpp"
#include "simulator/report/uncertainty.hpp"

namespace rehearse {

struct ValidatedRow {
  const PublishedRow* measurement;
  double measured_step_s = 0;  // 0: not measured
  double predicted_step_s = 0;
  int devices = 0;
  std::optional<Uncertainty> uncertainty;  // none: not asked for
  double error() const { return predicted_step_s / measured_step_s - 1; }
  // Whether the measurement lies in the interval, which must be there.
  bool inside() const {
    return uncertainty->low_s <= measured_step_s && measured_step_s <= uncertainty->high_s;
  }
};

// How many measured step times lie in their intervals, and how wide those are, (high - low) / predicted.
struct Coverage {
  std::size_t rows = 0, inside = 0;
  double median_width = 0;
  double share() const { return rows > 0 ? static_cast<double>(inside) / static_cast<double>(rows) : 0; }
};

// The figures of a whole table, or of one of its groups.
struct TableSummary {
  std::string group;
  ErrorSummary errors;
  std::vector<Efficiency> efficiencies;
  std::optional<Coverage> coverage;  // none: no intervals
};

struct Validation {
  const MeasurementTable* table;
  bool kernels = false;  // of single kernels
  // Times of single kernels or collectives stand in the place of the steps'.
  bool of_operations() const { return kernels || table->collectives; }
  std::vector<ValidatedRow> rows;
  std::vector<Observation> observations;  // by row
  TableSummary whole;
  std::vector<TableSummary> groups;  // if there are several, in order of their first rows
  std::vector<Comparison> comparisons;
};

void write_text(const Validation& validation, std::ostream& out);
void write_csv(const std::vector<Validation>& all, std::ostream& out);
nlohmann::ordered_json to_json(const std::vector<Validation>& all);

}  // namespace rehearse
