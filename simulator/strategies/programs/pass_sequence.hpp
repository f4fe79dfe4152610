// Writes a stage's passes in the order of its pipeline schedule, with the transfers from and to other stages.
#pragma once

#include <functional>
#include <vector>

#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/pass_tensors.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Writes one pass; its first op waits for op `received`, which brings the pass's input (-1: none).
using WritePass = std::function<void(const PassItem& item, int received)>;

// Returns a stage's passes in the order of its pipeline schedule.
std::vector<PassItem> passes_in_order(const StepPlan& plan, const StageProgram& stage);
// Writes these passes and the stage's transfers. Sets stage.sends, unless transfers block the computation.
void write_sequence(StepPlan& plan, StageProgram& stage, const StageTensors& tensors,
                    const std::vector<PassItem>& passes, const WritePass& write_pass);

}  // namespace rehearse
