#include "backend/commands/run_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "backend/commands/checkpoint_choice.hpp"
#include "backend/commands/library_output.hpp"
#include "backend/commands/record_keeper.hpp"
#include "backend/commands/recorded_launch.hpp"
#include "backend/commands/run_guard.hpp"
#include "backend/gpu/gpu_module.hpp"
#include "backend/host/host_executor.hpp"
#include "backend/host/join.hpp"
#include "backend/loading/batch_input.hpp"
#include "backend/runs/agreement.hpp"
#include "backend/runtime/communicators.hpp"
#include "models/text/error.hpp"
#include "simulator/scenario/reading/command_scenario.hpp"

namespace rehearse {
namespace {

// Returns the algorithm that all of the schedule's all-reduces have in common, if any.
std::optional<Algorithm> all_reduce_algorithm(const Schedule& schedule) {
  std::optional<Algorithm> common;
  for (const Program& program : schedule.programs)
    for (const Op& op : program.ops) {
      if (op.kind != OpKind::collective || op.collective.kind != CollectiveKind::all_reduce) continue;
      if (common && *common != op.collective.algorithm) return {};
      common = op.collective.algorithm;
    }
  return common == Algorithm::automatic ? std::optional<Algorithm>() : common;
}

// Called in each rank's process.
Executor choose_executor(const RunArguments& arguments, const Scenario& scenario, const Plan& plan,
                         Transport& transport) {
  if (arguments.device == "cpu") return host_executor(scenario.run.collectives);
  const bool loads =
      std::any_of(plan.schedule->programs.begin(), plan.schedule->programs.end(), loads_batches);
  if (loads && arguments.device == "auto") return host_executor(scenario.run.collectives);
  if (!built_for_gpus()) {
    if (arguments.device == "auto") return host_executor(scenario.run.collectives);
    throw InputError({}, "this rehearse-run was built without CUDA; allowed: --device cpu");
  }
  const bool timed = scenario.run.compute == RealRun::Compute::timed;
  if (arguments.device == "auto" && timed) return host_executor(scenario.run.collectives);
  try {
    refuse_unordered(*plan.schedule, Communication(*plan.schedule));
  } catch (const RunError&) {
    if (arguments.device == "gpu") throw;
    return host_executor(scenario.run.collectives);
  }
  CudaChoice choice = gpu_executor(
      {arguments.oversubscribe, arguments.patience_s, timed,
       scenario.run.collectives == RealRun::Collectives::schedule, all_reduce_algorithm(*plan.schedule),
       scenario.run.cuda_graphs, arguments.kernels, arguments.nccl_choices},
      transport);
  if (choice.refused.empty()) return std::move(choice.executor);
  if (arguments.device == "gpu") throw RunError(choice.refused);
  return host_executor(scenario.run.collectives);
}

}  // namespace

void run_run(const RunArguments& arguments, std::istream& in, std::ostream& out) {
  Scenario scenario = read_command_scenario(arguments.scenario, arguments.overrides, in,
                                            {{"--trace", arguments.output.trace}});
  if (arguments.kernels && (arguments.device == "cpu" || arguments.output.trace.empty()))
    throw InputError({},
                     "--kernels records a GPU's kernels; allowed with --device gpu (or auto) and --trace");
  if (arguments.nccl_choices &&
      (arguments.device == "cpu" || scenario.run.collectives == RealRun::Collectives::schedule))
    throw InputError({},
                     "--nccl-choices applies to NCCL's own collectives; allowed with --device gpu (or auto) "
                     "and --collectives library (or auto)");
  refuse_offload(scenario);
  refuse_what_is_only_predicted(scenario);
  refuse_uneven_vocabulary(scenario);
  const Plan plan = write_schedule(scenario);
  check(*plan.schedule);
  count_in_repetitions(scenario, *plan.schedule);
  RateQueues queues(StoragePath::queues(*scenario.cluster));
  bool starts_all = false;
  const std::optional<CheckpointPlan> checkpoints = plan_checkpoints(arguments, scenario, *plan.schedule);
  const auto body = [&](Transport& transport, Journal* journal) {
    std::optional<RealRunResult> run;
    {
      const OutputToErrors while_libraries_print;
      const Executor executor = choose_executor(arguments, scenario, plan, transport);
      run = run_rank(scenario, plan, transport, executor,
                     {arguments.check_replicas, journal, checkpoints ? &*checkpoints : nullptr,
                      starts_all ? &queues : nullptr});
    }
    if (!run) return;
    Measurement own = describe_run(scenario, run->executor, transport.kind(), arguments.command);
    write_run_result(arguments.output, scenario, plan, std::move(*run), std::move(own), out);
  };

  JoinOptions ranks;
  ranks.transport = arguments.transport;
  ranks.ranks = process_ranks(*plan.schedule);
  ranks.patience_s = arguments.patience_s;
  ranks.transport = choose_transport(ranks);
  const Measurement measurement =
      describe_run(scenario, "host", ranks.transport == "mpi" ? "MPI" : "TCP", arguments.command);
  const bool first = ranks.transport == "local" || will_be_first(ranks.transport);
  if (first) refuse_unwritable_record(arguments.output.trace, scenario, plan);
  if (ranks.transport == "local") {
    starts_all = true;
    refuse_crowding(scenario, plan, arguments.oversubscribe);
    LaunchOptions options;
    options.ranks = ranks.ranks;
    options.patience_s = ranks.patience_s;
    return launch_recorded(options, arguments.output, scenario, plan, measurement, body);
  }
  RecordKeeper keeper;
  if (first) keeper.start(arguments.output, scenario, plan, measurement);
  std::string options = fmt::format("--device {}", arguments.device);
  if (arguments.check_replicas) options += " --check-replicas";
  if (checkpoints) options += fmt::format(" --checkpoints, from step {} on", checkpoints->first());
  with_ranks(ranks, [&](Transport& transport) {
    agree(transport, {REHEARSE_VERSION, scenario.text, options});
    body(transport, keeper.share(transport, scenario, plan));
  });
}

}  // namespace rehearse
