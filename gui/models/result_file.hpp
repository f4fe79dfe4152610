// Reads a file of results of any kind: the CSV of a sweep or of a validation (its header tells which), or the
// JSON of a search for plans.
#pragma once

#include <variant>

#include "gui/models/accuracy_table.hpp"
#include "gui/models/plan_axes.hpp"
#include "gui/models/plan_table.hpp"
#include "gui/models/sweep_table.hpp"
#include "gui/models/trace_file.hpp"

namespace rehearse::gui {

struct ReadSweep {
  SweepTable sweep;
  TableData rows;  // of its points
};
struct ReadPlans {
  PlanFile plans;
  TableData rows;  // of the plans
  std::vector<PlanAxis> axes;
};
using ResultFile = std::variant<ReadSweep, AccuracyTable, ReadPlans>;

// InputError: no file, or none of these. Cancelled.
ResultFile read_results(const std::string& path, Progress& progress);

}  // namespace rehearse::gui
