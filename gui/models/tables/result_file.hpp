// Reads a results file of any kind: the CSV table of a sweep or a validation, distinguished by its header, or
// the JSON of a plan search.
#pragma once

#include <variant>

#include "gui/models/tables/accuracy_table.hpp"
#include "gui/models/tables/plan_axes.hpp"
#include "gui/models/tables/plan_table.hpp"
#include "gui/models/tables/sweep_table.hpp"
#include "gui/models/work/progress.hpp"

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

// Throws InputError if the file cannot be read or is none of these, and Cancelled.
ResultFile read_results(const std::string& path, Progress& progress);

}  // namespace rehearse::gui
