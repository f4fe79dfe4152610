// Compares a table of measurements with its predictions, and writes the comparison.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "simulator/commands/validate/memory_columns.hpp"
#include "simulator/commands/validate/statistics.hpp"
#include "simulator/commands/validate/table.hpp"
#include "simulator/report/uncertainty.hpp"

namespace rehearse {

struct ValidatedRow {
  const PublishedRow* measurement;
  double measured_step_s = 0;  // 0: not measured
  double predicted_step_s = 0;
  int devices = 0;
  std::optional<Uncertainty> uncertainty;  // nullopt: not requested
  std::string found;                       // what was found out about the row; follows its note
  double error() const { return predicted_step_s / measured_step_s - 1; }
  // Returns whether the measurement is in the interval, which must exist.
  bool inside() const {
    return uncertainty->low_s <= measured_step_s && measured_step_s <= uncertainty->high_s;
  }
};

// How many measured step times are in their intervals, and how wide these are: (high - low) / predicted.
struct Coverage {
  std::size_t rows = 0, inside = 0;
  double median_width = 0;
  double share() const { return rows > 0 ? static_cast<double>(inside) / static_cast<double>(rows) : 0; }
};

// The figures of an entire table, or of one of its groups.
struct TableSummary {
  std::string group;
  ErrorSummary errors;
  std::vector<Efficiency> efficiencies;
  std::optional<Coverage> coverage;  // nullopt: no intervals
};

struct Validation {
  const MeasurementTable* table;
  bool kernels = false;  // a table of single kernels
  // Returns whether times are those of single kernels or collectives, rather than those of steps.
  bool of_operations() const { return kernels || table->collectives; }
  std::vector<ValidatedRow> rows;
  std::vector<Observation> observations;  // by row
  std::vector<MemoryRow> memory;          // of the rows whose memory was measured
  TableSummary whole;
  std::vector<TableSummary> groups;  // if there are several, in the order of their first rows
  std::vector<Comparison> comparisons;
};

void write_text(const Validation& validation, std::ostream& out);
void write_csv(const std::vector<Validation>& all, std::ostream& out);
nlohmann::ordered_json to_json(const std::vector<Validation>& all);

}  // namespace rehearse
