// Writes checkpoints of a real run, and continues from them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/runs/checkpoint_files.hpp"
#include "backend/runtime/transport.hpp"
#include "backend/training/state_slice.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// What a run does about checkpoints.
struct CheckpointPlan {
  std::string folder;
  int every = 1;  // runs of the schedule
  bool beside_training = false;
  int keep = 2;          // complete ones
  FoundCheckpoint from;  // without a folder: starts anew
  long first() const { return from.folder.empty() ? 0 : from.manifest.round; }
};

// Returns what has to be the same where a training continues.
TrainedWhat trained_what(const Scenario& scenario);
// Throws InputError, which names what differs with both values, if the checkpoint is of another training.
void refuse_other_training(const FoundCheckpoint& found, const Scenario& scenario);

// Reads this rank's state from the checkpoint of the plan. Throws RunError if it lacks anything.
void load_checkpoint(const CheckpointPlan& plan, TrainState& state, Arithmetic& arithmetic);

// Writes the checkpoints of one rank; all ranks do so at the same rounds.
class CheckpointKeeper {
public:
  // Removes checkpoints that an earlier run has left incomplete.
  CheckpointKeeper(const CheckpointPlan& plan, const Scenario& scenario, Transport& transport,
                   TrainState& state, Arithmetic& arithmetic);
  ~CheckpointKeeper();
  // Saves the state after `round` runs of the schedule. All streams must rest. Beside training, returns when
  // the state is in host memory, after the previous checkpoint has been written.
  void save(long round);
  // Returns when all checkpoints are complete.
  void finish();
  // Seconds for which each save() held training back.
  const std::vector<double>& held_back_s() const;

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rehearse
