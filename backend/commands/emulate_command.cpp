#include "backend/commands/emulate_command.hpp"

#include <fmt/format.h>

#include <istream>
#include <memory>
#include <ostream>

#include "backend/commands/checkpoint_choice.hpp"
#include "backend/commands/recorded_launch.hpp"
#include "backend/commands/run_guard.hpp"
#include "backend/emulate/network.hpp"
#include "backend/emulate/shaping.hpp"
#include "backend/host/host_executor.hpp"
#include "models/text/error.hpp"
#include "simulator/costs/transfer.hpp"
#include "simulator/scenario/reading/command_scenario.hpp"

namespace rehearse {
namespace {

// Returns the transfers between ranks, and the control messages between rank 0 and each other rank.
std::vector<Conversation> conversations(const Plan& plan, const Wiring& wiring) {
  std::vector<Conversation> all;
  for (const Channel& channel : wiring.channels())
    all.push_back({plan.endpoints[channel.from], plan.endpoints[channel.to]});
  for (int r = 1; r < process_ranks(*plan.schedule); ++r)
    all.push_back({plan.endpoints[0], plan.endpoints[static_cast<std::size_t>(r)]});
  return all;
}

// A scenario and its emulated cluster, which exists as long as this object.
struct Emulation {
  Scenario scenario;
  Plan plan;
  std::unique_ptr<EmulatedNetwork> network;

  // Returns options that start a process for each rank, in its part of the network.
  LaunchOptions ranks(double patience_s) {
    LaunchOptions options;
    options.ranks = process_ranks(*plan.schedule);
    options.patience_s = patience_s;
    options.enter = [this](int rank) { network->enter(plan.endpoints[rank]); };
    options.first_address = network->address(plan.endpoints.front());
    return options;
  }
};

// `talk` returns the conversations of the ranks, given the plan and its wiring.
Emulation emulation(const ScenarioArguments& arguments, std::istream& in,
                    std::vector<Conversation> (*talk)(const Plan&, const Wiring&)) {
  Emulation made;
  made.scenario = read_command_scenario(arguments.scenario, arguments.overrides, in,
                                        {{"--trace", arguments.output.trace}});
  refuse_offload(made.scenario);
  refuse_what_is_only_predicted(made.scenario);
  refuse_uneven_vocabulary(made.scenario);
  made.plan = write_schedule(made.scenario);
  check(*made.plan.schedule);
  count_in_repetitions(made.scenario, *made.plan.schedule);
  refuse_unwritable_record(arguments.output.trace, made.scenario, made.plan);
  refuse_crowding(made.scenario, made.plan, arguments.oversubscribe);
  if (const std::string missing = emulation_missing(); !missing.empty()) throw RunError(missing);
  const Wiring wiring(*made.plan.schedule, *made.scenario.cluster, made.plan.endpoints,
                      made.scenario.engine.chunk_bytes);
  std::vector<Endpoint> endpoints = made.plan.endpoints;
  endpoints.resize(static_cast<std::size_t>(process_ranks(*made.plan.schedule)));
  made.network = std::make_unique<EmulatedNetwork>(
      emulation_graph(*made.scenario.cluster, endpoints, talk(made.plan, wiring), kMostEmulatedBandwidth));
  return made;
}

// Sets the bandwidth and the latency of the links between two endpoints; does nothing if they share a host.
void describe_links(const EmulatedNetwork& network, Endpoint from, Endpoint to, LinkTrial& trial) {
  for (const EmulationGraph::Forward& forward : network.graph().forwards) {
    if (!forward.first || forward.source != network.address(from) ||
        forward.destination != network.address(to))
      continue;
    trial.link_payload_bandwidth = forward.bandwidth * tcp_efficiency(kFrameOverheadBytes);
    trial.link_latency_s = network.latencies() ? forward.latency_s : 0;
  }
}

}  // namespace

void run_emulate(const ScenarioArguments& arguments, std::istream& in, std::ostream& out) {
  Emulation emulated = emulation(arguments, in, conversations);
  const Plan& plan = emulated.plan;
  const std::optional<CheckpointPlan> checkpoints =
      plan_checkpoints(arguments, emulated.scenario, *plan.schedule);
  const Scenario& scenario = emulated.scenario;
  const Executor executor = host_executor(scenario.run.collectives);
  Measurement measurement = describe_run(scenario, "emulated", "TCP", arguments.command);
  for (const std::string& missing : emulated.network->left_out()) measurement.notes.push_back(missing);
  RateQueues queues(StoragePath::queues(*scenario.cluster));
  const auto body = [&](Transport& transport, Journal* journal) {
    auto run = run_rank(scenario, plan, transport, executor,
                        {arguments.check_replicas, journal, checkpoints ? &*checkpoints : nullptr, &queues});
    if (run) write_run_result(arguments.output, scenario, plan, std::move(*run), measurement, out);
  };
  launch_recorded(emulated.ranks(arguments.patience_s), arguments.output, scenario, plan, measurement, body);
}

LinkGround emulated_links(const ScenarioArguments& arguments, std::istream& in) {
  const auto each_to_each = [](const Plan&, const Wiring&) { return std::vector<Conversation>(); };
  const auto emulated = std::make_shared<Emulation>(emulation(arguments, in, each_to_each));
  LinkGround ground;
  ground.with_ranks = [emulated](double patience_s, const std::function<void(Transport&)>& body) {
    launch(emulated->ranks(patience_s), body);
  };
  ground.title = fmt::format("TCP between {} ranks in the emulated cluster of {}, {}",
                             process_ranks(*emulated->plan.schedule), emulated->scenario.name,
                             emulated->scenario.cluster->title);
  for (const std::string& missing : emulated->network->left_out()) ground.title += "; without " + missing;
  ground.node = [emulated](int rank) {
    return std::to_string(emulated->scenario.cluster->node_of(emulated->plan.endpoints[rank]));
  };
  ground.describe = [emulated](LinkTrial& trial) {
    const std::vector<Endpoint>& endpoints = emulated->plan.endpoints;
    describe_links(*emulated->network, endpoints[trial.members.front()], endpoints[trial.members.back()],
                   trial);
  };
  return ground;
}

}  // namespace rehearse
