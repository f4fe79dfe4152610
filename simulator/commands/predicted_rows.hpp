// Predictions of a table's rows of step times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/commands/table.hpp"
#include "simulator/report/uncertainty.hpp"

namespace rehearse {

struct PredictedRow {
  double samples = 0, step_s = 0;  // of a step
  int devices = 0;
  std::optional<Uncertainty> uncertainty;  // none: not asked for
};

// Several rows at once, each in a process of its own; rows with the same scenario only once. `overrides`
// ("key=value") hold for all rows. InputError or RunError of the first row that cannot be predicted.
std::vector<PredictedRow> predict_rows(const MeasurementTable& table,
                                       const std::vector<std::string>& overrides, bool with_uncertainty);

}  // namespace rehearse
