// Pipelines: in which order a stage runs its micro-batches, and what it exchanges with its neighbours.
#pragma once

#include <functional>
#include <vector>

#include "simulator/strategies/stage_program.hpp"

namespace rehearse {

struct PassItem {
  bool forward = true;
  int microbatch = 0;
};

// gpipe: all forward passes, then all backward passes (Huang et al., NeurIPS 2019).
// 1f1b: PipeDream-flush (Narayanan et al., SC 2021): stage s of p runs p-s-1 forward passes ahead, then one
// forward and one backward in turn, so that it never keeps more than p-s micro-batches.
std::vector<PassItem> pipeline_order(PipelineSchedule schedule, int stages, int stage, int microbatches);

// Writes the passes of all micro-batches and their transfers to the stage's program.
void write_passes(StepPlan& plan, StageProgram& stage);

// Writes the workers' programs, stage by stage: its passes, and behind them what `behind` adds. The stages'
// programs are in plan.schedule when this returns; the rest of them is returned.
std::vector<StageProgram> write_stages(StepPlan& plan, StageTraffic traffic,
                                       const std::function<void(StageProgram&)>& behind);

}  // namespace rehearse
