#include "simulator/strategies/programs/stage_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "models/text/error.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {
namespace {

int workers_of(const StrategyChoice& strategy) {
  return strategy.data * strategy.context * strategy.tensor * strategy.pipeline;
}

bool copies_to_device(const Node& node) {
  return node.device.compute_capability > 0 && node.host_link_bandwidth > 0;
}

bool takes_time(const BatchLoading& loading, const Node& node) {
  return loading.reads() || loading.prepare_s > 0 || copies_to_device(node);
}

// Each context-parallel rank loads its share of the sequences.
BatchLoading loading_of(const Scenario& scenario) {
  return batch_loading(scenario.data, *scenario.cluster,
                       scenario.training.micro_batch / scenario.strategy.context,
                       workers_of(scenario.strategy));
}

// The tensor-parallel ranks of a sequence get it from the first of them.
Quantity read_bytes(const Scenario& scenario, const BatchLoading& loading, const Mesh& mesh) {
  if (scenario.strategy.tensor == 1) return loading.read_bytes;
  Quantity bytes;
  bytes.axis = mesh.axis("tensor");
  bytes.values.assign(static_cast<std::size_t>(scenario.strategy.tensor), 0);
  bytes.values.front() = loading.read_bytes;
  return bytes;
}

}  // namespace

Quantity storage_of_ranks(const Cluster& cluster, Role& role, int which) {
  const Storage& storage = cluster.storage(which);
  if (storage.kind == Storage::Kind::shared && storage.servers <= 1) return 0;
  const int ranks = role.size(), per_node = cluster.node().devices;
  Quantity rank;
  rank.mesh = static_cast<int>(role.meshes.size());
  if (storage.kind == Storage::Kind::local && ranks % per_node == 0) {
    rank.axis = 1;
    for (int node = 0; node < ranks / per_node; ++node) rank.values.push_back(node);
    role.meshes.emplace_back(Mesh({{"device", per_node}, {"node", ranks / per_node}}));
    return rank;
  }
  rank.axis = 0;
  for (int number = 0; number < ranks; ++number)
    rank.values.push_back(storage.kind == Storage::Kind::local ? number / per_node
                                                               : number % storage.servers);
  role.meshes.emplace_back(Mesh({{"rank", ranks}}));
  return rank;
}

void add_storages(StepPlan& plan) {
  const Cluster& cluster = *plan.scenario.cluster;
  for (int which = 0; which < static_cast<int>(cluster.storages().size()); ++which) {
    const int role = static_cast<int>(plan.schedule.roles.size()), ranks = cluster.storage_endpoints(which);
    bool used = false;
    for (Program& program : plan.schedule.programs)
      for (Op& op : program.ops)
        for (Message& message : op.messages)
          if (message.peer.kind == Peer::Kind::member && message.peer.role == storage_role(which)) {
            message.peer.role = role;
            used = true;
          }
    if (!used) continue;
    const std::string name = which == 0 ? "storage" : "storage " + std::to_string(which + 1);
    plan.schedule.roles.push_back({name, {Mesh({{"storage", ranks}})}});
    Program idle;
    idle.name = name;
    idle.role = role;
    plan.schedule.programs.push_back(std::move(idle));
    for (int rank = 0; rank < ranks; ++rank) plan.endpoints.push_back(cluster.storage_endpoint(rank, which));
  }
}

std::optional<BatchLoader> plan_input(const Scenario& scenario, Role& workers) {
  if (!scenario.data.given) return std::nullopt;
  BatchLoader input;
  input.loading = loading_of(scenario);
  input.loader = scenario.data.loader;
  const Node& node = scenario.cluster->node();
  input.on_network = scenario.cluster->storage().servers > 0;
  input.copies = copies_to_device(node);
  if (!takes_time(input.loading, node)) return std::nullopt;
  input.read = read_bytes(scenario, input.loading, workers.meshes.front());
  if (input.loading.reads()) input.storage_of = storage_of_ranks(*scenario.cluster, workers, 0);
  return input;
}

InputRates input_rates(const Scenario& scenario) {
  const StrategyChoice& strategy = scenario.strategy;
  const Storage& storage = scenario.cluster->storage();
  InputRates rates{loading_of(scenario), 0, INFINITY, 0};
  const double readers = strategy.data * strategy.context;
  rates.workers = rates.loading.samples_per_s() * readers;
  if (!rates.loading.reads()) return rates;
  // The ranks of the first stage.
  const double nodes = std::ceil(readers * strategy.tensor / scenario.cluster->node().devices);
  rates.storage_bytes_per_s = storage.kind == Storage::Kind::local ? nodes * storage.read_bandwidth
                              : storage.client_bandwidth > 0
                                  ? std::min(storage.read_bandwidth, nodes * storage.client_bandwidth)
                                  : storage.read_bandwidth;
  rates.storage = rates.storage_bytes_per_s / rates.loading.read_bytes * rates.loading.samples;
  return rates;
}

int rounds_of_input(const Scenario& scenario, int steps) {
  if (!scenario.data.given) return 1;
  const BatchLoading loading = loading_of(scenario);
  if (!takes_time(loading, scenario.cluster->node())) return 1;
  return steps_per_schedule(loading, scenario.data.loader, scenario.microbatches * steps);
}

void complete_input(StepPlan& plan) {
  if (!plan.input) return;
  constexpr int kMostBatches = 1024;  // of a schedule of several steps
  Schedule& schedule = plan.schedule;
  const int rounds = rounds_of_input(plan.scenario, schedule.optimizer_steps);
  const std::int64_t batches = std::int64_t{rounds} * schedule.optimizer_steps * plan.scenario.microbatches;
  if (rounds > 1 && batches > kMostBatches)
    throw InputError(
        {plan.scenario.name, 0, 0},
        fmt::format("data.loader.workers is {} and data.loader.prefetch {}, so that loading repeats "
                    "after {} batches; allowed: after at most {}",
                    plan.scenario.data.loader.workers, plan.scenario.data.loader.prefetch, batches,
                    kMostBatches));
  if (rounds > 1 && schedule.has_control_ops())
    throw InputError(
        {plan.scenario.name, 0, 0},
        fmt::format("data.loader.workers is {} and data.loader.prefetch {} with workers that do not "
                    "wait for each other and steps of {} batches; allowed: together no more batches "
                    "ahead than those of a step, and workers that divide it",
                    plan.scenario.data.loader.workers, plan.scenario.data.loader.prefetch,
                    plan.scenario.microbatches));
  for (Program& program : schedule.programs) {
    repeat_ops(program, rounds);
    connect_batches(program, *plan.input);
  }
  schedule.optimizer_steps *= rounds;
  schedule.samples *= rounds;
  schedule.tokens *= rounds;
  schedule.loads_ahead = true;
}

}  // namespace rehearse
