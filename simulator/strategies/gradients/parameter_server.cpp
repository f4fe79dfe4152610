// Parameter servers: workers push gradients, servers update, and workers pull the new weights. Li et al.,
// "Scaling Distributed Machine Learning with the Parameter Server" (OSDI 2014), with each bucket divided into
// equal shares over all servers (as BytePS does: Jiang et al., OSDI 2020).
#include "simulator/strategies/gradients/parameter_server.hpp"

#include <fmt/format.h>

#include "models/text/document.hpp"
#include "models/text/error.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"

namespace rehearse {

namespace {

using Mode = ParameterServer::Mode;
using Placement = ParameterServer::Placement;

class ParameterServers : public GradientStrategy {
public:
  std::string headline(const Scenario& scenario) const override {
    const ParameterServer& choice = scenario.strategy.parameter_server;
    std::string kind;
    if (choice.mode == Mode::async) kind = "asynchronous ";
    if (choice.mode == Mode::stale_synchronous) kind = "stale-synchronous ";
    std::string text =
        fmt::format("{} {}parameter server{}", choice.servers, kind, choice.servers == 1 ? "" : "s");
    if (choice.mode == Mode::stale_synchronous) text += fmt::format(" (staleness {})", choice.staleness);
    return text;
  }

  std::optional<ServerNodes> server_nodes(Section& strategy, const StrategyChoice& choice) const override {
    if (choice.parameter_server.placement != Placement::dedicated) return std::nullopt;
    return ServerNodes{choice.parameter_server.servers,
                       strategy.section("parameter_server").place("servers")};
  }

  void fit(Section& strategy, const Scenario& scenario) const override {
    const Section own = strategy.section("parameter_server");
    const ParameterServer& choice = scenario.strategy.parameter_server;
    const Cluster& cluster = *scenario.cluster;
    const auto [places, what] = places_of(cluster, choice.placement);
    if (choice.servers > places)
      own.refuse("servers", fmt::format("{}", choice.servers), fmt::format("at most {}, {}", places, what));
    const bool synchronous = choice.mode == Mode::sync;
    // A pipeline drains every round, so all its micro-batches use the same weights. Tensor ranks, however,
    // hold copies of norms and biases; asynchronous servers would update the copies in different orders.
    if (!synchronous && scenario.strategy.tensor > 1)
      own.refuse(
          "mode",
          fmt::format("\"{}\" with tensor = {}", kServerModeNames[static_cast<std::size_t>(choice.mode)],
                      scenario.strategy.tensor),
          "\"sync\" with tensor parallelism, or tensor = 1");
    constexpr int kMostAsynchronousWorkers = 256;
    if (!synchronous && cluster.devices() > kMostAsynchronousWorkers) {
      own.refuse("mode",
                 fmt::format("\"{}\" with {} workers",
                             kServerModeNames[static_cast<std::size_t>(choice.mode)], cluster.devices()),
                 fmt::format("\"sync\" with more than {}", kMostAsynchronousWorkers));
    }
    // Each worker sends to each server, so the number of pairs is limited before they are written;
    // asynchronous servers serve each worker on separate streams.
    const std::int64_t most = synchronous ? 1'048'576 : 4'096;
    if (static_cast<std::int64_t>(choice.servers) * cluster.devices() > most) {
      own.refuse("servers", fmt::format("{}, each with {} workers", choice.servers, cluster.devices()),
                 cluster.devices() < most
                     ? fmt::format("at most {} for that many workers", most / cluster.devices())
                     : fmt::format("at most {} workers", most));
    }
  }

  WaitedFor waited_for(const Scenario& scenario) const override {
    return scenario.strategy.parameter_server.mode == Mode::async ? WaitedFor::servers
                                                                  : WaitedFor::servers_and_slower_ranks;
  }

  Advice less_communication(const Scenario& scenario, const LinkPlace& busiest) const override {
    if (!scenario.strategy.overlap) return {};
    return less_waiting(scenario, busiest);
  }

  Advice less_waiting(const Scenario& scenario, const LinkPlace& busiest) const override {
    const ParameterServer& choice = scenario.strategy.parameter_server;
    const Cluster& cluster = *scenario.cluster;
    const bool dedicated = choice.placement == Placement::dedicated;
    const int places = choice.placement == Placement::devices ? cluster.devices() : cluster.nodes();
    if (dedicated ? busiest.at_server : choice.servers < places) {
      const int more = dedicated ? 2 * choice.servers : std::min(2 * choice.servers, places);
      Advice advice{fmt::format("{} servers share the load", more),
                    {fmt::format("strategy.parameter_server.servers={}", more)}};
      if (dedicated && more > cluster.server_nodes())
        advice.sets.insert(advice.sets.begin(), fmt::format("cluster.server_nodes={}", more));
      return advice;
    }
    // Each device of a node sends all its gradients to the servers; a ring carries them over the node's
    // network cards once.
    return {"a ring sends less over each network card", {"strategy.gradients=all-reduce"}};
  }

  std::string learns_otherwise(const Scenario& scenario) const override {
    return scenario.strategy.parameter_server.mode == Mode::sync
               ? ""
               : "asynchronous servers apply gradients of older weights";
  }

  void write(StepPlan& plan) const override {
    add_servers(plan);
    const std::vector<StageProgram> stages = write_workers(plan);
    const StrategyChoice& strategy = plan.scenario.strategy;
    const int servers = strategy.parameter_server.servers;
    plan.schedule.programs.push_back(
        strategy.parameter_server.mode == Mode::sync
            ? synchronous_server(plan, stages, {kServerRole, servers, kWorkers, strategy.data})
            : asynchronous_server(plan, stages));
    if (plan.tied_parameters > 0)
      plan.notes.emplace_back(
          "The first and the last stage both hold the tied embedding, and the servers update it for both.");
  }

protected:
  std::unique_ptr<StageHooks> worker(StepPlan& plan, int stage) const override {
    return push_and_pull(plan, stage,
                         {Peer::each(kServerRole), plan.scenario.strategy.parameter_server.servers, true});
  }

private:
  // Returns the largest allowed number of servers, and the reason.
  static std::pair<int, const char*> places_of(const Cluster& cluster, Placement placement) {
    if (placement == Placement::dedicated)
      return {cluster.server_nodes(), "the server nodes of the cluster (cluster.server_nodes)"};
    if (placement == Placement::colocated)
      return {cluster.nodes(), "the nodes of the cluster (one server a node)"};
    return {cluster.devices(), "the devices of the cluster (one server a device)"};
  }

  // Places servers on processors of dedicated nodes, on processors spread over the workers' nodes, or on
  // devices spread over all of them.
  static void add_servers(StepPlan& plan) {
    const ParameterServer& choice = plan.scenario.strategy.parameter_server;
    const Cluster& cluster = *plan.scenario.cluster;
    const auto [places, what] = places_of(cluster, choice.placement);
    if (choice.servers > places)
      throw InputError({plan.scenario.name, 0, 0},
                       fmt::format("strategy.parameter_server.servers is {}; allowed: at most {}, {}",
                                   choice.servers, places, what));
    plan.schedule.roles.push_back({"server", {Mesh({{"server", choice.servers}})}});
    for (int i = 0; i < choice.servers; ++i) {
      const auto spread = static_cast<int>(static_cast<std::int64_t>(i) * places / choice.servers);
      plan.endpoints.push_back(choice.placement == Placement::dedicated   ? cluster.server_processor(i)
                               : choice.placement == Placement::colocated ? cluster.processor_of_node(spread)
                                                                          : spread);
    }
  }
};

std::shared_ptr<const GradientStrategy> read_parameter_server(Section& strategy, StrategyChoice& choice) {
  Section own = strategy.section("parameter_server");
  ParameterServer& server = choice.parameter_server;
  server.servers = static_cast<int>(own.integer("servers", 1, 100'000, 1));
  server.placement = static_cast<Placement>(own.choice("placement", kServerPlacementNames, 0));
  server.mode = static_cast<Mode>(own.choice("mode", kServerModeNames, 0));
  constexpr int kUsualStaleness = 3, kMostStaleness = 100;
  const auto staleness = own.integer("staleness", 0, kMostStaleness, kUsualStaleness);
  if (server.mode == Mode::stale_synchronous)
    server.staleness = static_cast<int>(staleness);
  else if (own.has("staleness"))
    own.refuse_inapplicable(
        "staleness",
        fmt::format("given, but mode is \"{}\"", kServerModeNames[static_cast<std::size_t>(server.mode)]),
        "to leave it out, or mode \"stale-synchronous\"");
  own.finish();
  return std::make_shared<ParameterServers>();
}

}  // namespace

extern const GradientStrategyEntry kParameterServerStrategy{
    "parameter-server", "data parallel: gradients go to servers, which send new weights back",
    "Every GPU trains its share of the batch. Each server holds a shard of the weights. Synchronous servers\n"
    "sum what all GPUs push, update, and are read before the next forward pass. Asynchronous servers apply\n"
    "each push as it comes and answer with their current weights: no GPU waits for others, but gradients "
    "are\n"
    "computed from weights that others have changed since (staleness). Stale-synchronous servers delay the\n"
    "answer to a GPU that would be more than `staleness` rounds ahead of the slowest.",
    "data = 8\n"
    "gradients = \"parameter-server\"\n\n"
    "[strategy.parameter_server]\n"
    "servers = 4\n"
    "placement = \"dedicated\"     # on cluster.server_nodes; \"colocated\": on the processors of the\n"
    "                            # GPUs' nodes; \"devices\": on the GPUs themselves, spread evenly\n"
    "mode = \"sync\"               # \"async\", \"stale-synchronous\"\n"
    "# staleness = 3             # rounds, with stale-synchronous\n",
    read_parameter_server};

}  // namespace rehearse
