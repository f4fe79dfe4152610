// The beginning of every schedule: layers on one device, the changes between them, the mesh and its groups.
#pragma once

#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/programs/model_cut.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Elements on one rank of the embedding table of a transformer whose output layer has the same weights; 0:
// the two layers share none.
double shared_table_parameters(const Scenario& scenario);
// What gradient strategies write programs into; nothing is written yet. `scenario` must outlive the plan.
StepPlan begin_step_plan(const Scenario& scenario, ModelCut cut);

}  // namespace rehearse
