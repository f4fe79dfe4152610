#include "simulator/remedies/remedy_kinds.hpp"

namespace rehearse {

void save_beside_training(const Situation& now, Remedies& found) {
  const Checkpoint& checkpoint = now.scenario.checkpoint;
  if (!checkpoint.given) return;
  const double saved_s = now.metrics.breakdown.checkpoint_s;
  if (checkpoint.mode == CheckpointMode::blocking)
    found.push_back({"checkpoints are written beside training", {"checkpoint.mode=async"}, saved_s});
  if (checkpoint.writers != CheckpointWriters::all)
    found.push_back(
        {"all data-parallel ranks write a part of each checkpoint", {"checkpoint.writers=all"}, saved_s});
}

}  // namespace rehearse
