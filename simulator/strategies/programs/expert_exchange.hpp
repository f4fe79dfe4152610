// Writes the all-to-alls between tokens and experts if experts receive unequal numbers of tokens.
#pragma once

#include <span>

#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Returns whether the change carries rows to experts or back.
bool is_expert_exchange(const ValueChange& change);
// Returns whether the plan's experts receive unequal numbers of rows.
bool uneven_experts(const StepPlan& plan);
// Writes the change as messages between all pairs of ranks, whose bytes are proportional to the rows of the
// experts at either end. The op has no name yet.
Op expert_exchange(const StepPlan& plan, const Program& program, const ValueChange& change, Pass pass,
                   bool of_gradient);
// Returns the fraction of the bytes of one row per chosen expert that is sent between ranks at `endpoints`
// under strategy.expert_dispatch: the k experts of a token, drawn from E with equal chances, are on n (1 -
// C(E - E/n, k) / C(E, k)) of n ranks or nodes on average, and on fewer with node-limited routing
// (Transformer::expert_groups). If rows are sent once to each of several nodes, they are spread inside the
// node afterwards, which is not counted.
double dispatched_share(const Scenario& scenario, std::span<const Endpoint> endpoints);
// Returns each rank's share of the experts' work in `layer`.
Quantity expert_share(const StepPlan& plan, int layer);

}  // namespace rehearse
