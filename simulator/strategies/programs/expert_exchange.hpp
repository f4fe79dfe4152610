// All-to-alls between tokens and experts that get unequally many of them.
#pragma once

#include <span>

#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Whether the change carries rows to experts or back.
bool is_expert_exchange(const ValueChange& change);
// Experts of the plan get unequally many rows.
bool uneven_experts(const StepPlan& plan);
// The change as messages between all pairs of ranks, with as many bytes as the experts at either end have
// rows. Without a name.
Op expert_exchange(const StepPlan& plan, const Program& program, const ValueChange& change, Pass pass,
                   bool of_gradient);
// Of the bytes that a row for each chosen expert has, those that are sent between ranks at `endpoints` as
// strategy.expert_dispatch says: a token's k experts, drawn from E with equal chances, lie on
// n (1 - C(E - E/n, k) / C(E, k)) of n ranks or nodes in the mean. Where rows are sent once to each of
// several nodes, spreading them inside goes on behind that and is not counted.
double dispatched_share(const Scenario& scenario, std::span<const Endpoint> endpoints);
// Of the work of experts in `layer` that each rank has.
Quantity expert_share(const StepPlan& plan, int layer);

}  // namespace rehearse
