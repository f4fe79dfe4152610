// Predicts a table's rows of step times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/commands/validate/memory_columns.hpp"
#include "simulator/commands/validate/table.hpp"
#include "simulator/report/uncertainty.hpp"

namespace rehearse {

struct PredictedRow {
  double samples = 0, step_s = 0;  // per step
  int devices = 0;
  std::optional<Uncertainty> uncertainty;  // nullopt: not requested
  std::optional<PredictedMemory> memory;   // if any was measured
};

// Predicts several rows at once, each in a separate process; rows with the same scenario are predicted only
// once. `overrides` ("key=value") apply to all rows. Throws the InputError or RunError of the first row that
// cannot be predicted.
std::vector<PredictedRow> predict_rows(const MeasurementTable& table,
                                       const std::vector<std::string>& overrides, bool with_uncertainty);

}  // namespace rehearse
