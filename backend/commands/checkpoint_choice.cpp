#include "backend/commands/checkpoint_choice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/text/error.hpp"

namespace rehearse {

std::optional<CheckpointPlan> plan_checkpoints(const ScenarioArguments& arguments, Scenario& scenario,
                                               const Schedule& schedule) {
  if (arguments.checkpoints.empty()) return {};
  const Checkpoint& wanted = scenario.checkpoint;
  if (!wanted.given)
    throw InputError({},
                     fmt::format("{}: --checkpoints is given, and [checkpoint] is missing; allowed: beside "
                                 "checkpoint.every, the steps between two of them",
                                 scenario.name));
  CheckpointPlan plan;
  plan.folder = arguments.checkpoints;
  plan.every = std::max(1, wanted.every / schedule.optimizer_steps);
  plan.beside_training = wanted.mode == CheckpointMode::asynchronous;
  plan.keep = arguments.kept_checkpoints;
  plan.from = newest_checkpoint(plan.folder);
  if (plan.from.folder.empty()) return plan;
  refuse_other_training(plan.from, scenario);
  RealRun& run = scenario.run;
  const long done = plan.first(), warmup = std::min<long>(run.warmup, done);
  if (done >= run.warmup + run.steps)
    throw InputError(
        {}, fmt::format("{}: {} is the state after step {}, and [run] has {} steps; allowed: more run.steps, "
                        "or another folder of checkpoints",
                        scenario.name, plan.from.folder, done, run.warmup + run.steps));
  run.steps -= static_cast<int>(done - warmup);
  run.warmup -= static_cast<int>(warmup);
  return plan;
}

}  // namespace rehearse
