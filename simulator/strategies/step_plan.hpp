// Starts every schedule: layers on one device, the changes between them, the mesh and its groups.
#pragma once

#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/programs/model_cut.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Returns the elements on one rank of the embedding table of a transformer whose output layer shares its
// weights; 0 if the two layers share no weights.
double shared_table_parameters(const Scenario& scenario);
// Returns a plan without programs, to which gradient strategies add theirs. `scenario` must outlive the plan.
StepPlan begin_step_plan(const Scenario& scenario, ModelCut cut);

}  // namespace rehearse
