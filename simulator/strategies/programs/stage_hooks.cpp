#include "simulator/strategies/programs/stage_hooks.hpp"

#include "simulator/strategies/programs/ops.hpp"
#include "simulator/strategies/programs/program_writer.hpp"

namespace rehearse {
namespace {

void write_step(StageHooks& hooks) {
  StageProgram& stage = hooks.stage();
  stage.sends.clear();  // streams run in order, so the last sends imply those of earlier steps
  write_passes(hooks);
  if (stage.parameters() == 0) return;
  hooks.behind_passes();
  const int last = last_op_of_stream(stage.program, find_stream(stage.program, "compute"));
  for (std::size_t b = 0; b < stage.buckets.size(); ++b)
    if (stage.buckets[b].parameters > 0)
      hooks.send_bucket(b, hooks.plan().scenario.strategy.overlap ? stage.backward_of_bucket[b] : last);
  hooks.end_of_step();
}

}  // namespace

void StageHooks::end_of_step() {
  sync_tied_embedding(plan_, stage_);
  add_op(stage_.program, optimizer_op(plan_, stage_));
}

StageProgram write_stage(StageHooks& hooks) {
  StageProgram& stage = hooks.stage();
  for (int step = 0; step < hooks.plan().schedule.optimizer_steps; ++step) write_step(hooks);
  if (stage.parameters() > 0) hooks.end_of_round();
  end_stage(hooks.plan(), stage);
  hooks.plan().schedule.programs.push_back(std::move(stage.program));
  return std::move(stage);
}

}  // namespace rehearse
