// Parameter servers with one aggregator per node: the GPUs of a node send their gradients to the node's
// processor, which adds them up, exchanges with the servers on behalf of all of them, and distributes the new
// weights. The network carries every gradient once per node. TensorFlow's tf_cnn_benchmarks call this
// distributed_replicated; MXNet's dist_sync and BytePS (Jiang et al., OSDI 2020) work the same way. All
// weights arrive before the next step begins.
#include <fmt/format.h>

#include "models/text/document.hpp"
#include "models/text/error.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/gradients/parameter_server.hpp"
#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

constexpr int kAggregatorRole = 1, kServersRole = 2;
constexpr auto kSend = Message::Direction::send, kReceive = Message::Direction::receive;

struct Choice {
  int servers = 1;
  bool colocated = true;  // on the processors of the workers' nodes; else on dedicated server nodes
};

class HierarchicalServers : public GradientStrategy {
public:
  explicit HierarchicalServers(Choice choice) : choice_(choice) {}

  std::string headline(const Scenario&) const override {
    return fmt::format("{} parameter server{}, added up in each node", choice_.servers,
                       choice_.servers == 1 ? "" : "s");
  }

  std::optional<ServerNodes> server_nodes(Section& strategy, const StrategyChoice&) const override {
    if (choice_.colocated) return std::nullopt;
    return ServerNodes{choice_.servers, strategy.section("hierarchical_parameter_server").place("servers")};
  }

  void fit(Section& strategy, const Scenario& scenario) const override {
    if (scenario.strategy.pipeline > 1)
      strategy.refuse("gradients",
                      fmt::format("\"hierarchical-parameter-server\" with a pipeline of {} stages",
                                  scenario.strategy.pipeline),
                      "it without a pipeline");
    if (scenario.strategy.tensor > 1)
      strategy.refuse(
          "gradients",
          fmt::format("\"hierarchical-parameter-server\" with tensor = {}", scenario.strategy.tensor),
          "it without tensor parallelism: a node's ranks then hold the same weights");
    const Section own = strategy.section("hierarchical_parameter_server");
    const auto [places, what] = places_of(*scenario.cluster);
    if (choice_.servers > places)
      own.refuse("servers", fmt::format("{}", choice_.servers), fmt::format("at most {}, {}", places, what));
  }

  WaitedFor waited_for(const Scenario&) const override { return WaitedFor::servers_and_slower_ranks; }

  Advice less_communication(const Scenario& scenario, const LinkPlace&) const override {
    const int places = places_of(*scenario.cluster).first;
    if (choice_.servers >= places) return {};
    const int more = std::min(2 * choice_.servers, places);
    return {fmt::format("{} servers share the load", more),
            {fmt::format("strategy.hierarchical_parameter_server.servers={}", more)}};
  }

  void write(StepPlan& plan) const override {
    const Cluster& cluster = *plan.scenario.cluster;
    plan.schedule.roles.push_back({"aggregator", {Mesh({{"node", cluster.nodes()}})}});
    for (int node = 0; node < cluster.nodes(); ++node)
      plan.endpoints.push_back(cluster.processor_of_node(node));
    plan.schedule.roles.push_back({"server", {Mesh({{"server", choice_.servers}})}});
    for (int i = 0; i < choice_.servers; ++i)
      plan.endpoints.push_back(choice_.colocated
                                   ? cluster.processor_of_node(static_cast<int>(
                                         static_cast<std::int64_t>(i) * cluster.nodes() / choice_.servers))
                                   : cluster.server_processor(i));
    const std::vector<StageProgram> stages = write_workers(plan);
    plan.schedule.programs.push_back(aggregator(plan, stages.front()));
    plan.schedule.programs.push_back(
        synchronous_server(plan, stages, {kServersRole, choice_.servers, kAggregatorRole, cluster.nodes()}));
  }

protected:
  std::unique_ptr<StageHooks> worker(StepPlan& plan, int stage) const override {
    const Cluster& cluster = *plan.scenario.cluster;
    Quantity own_node;
    own_node.axis = plan.data_axis;
    for (int worker = 0; worker < cluster.devices(); ++worker)
      own_node.values.push_back(cluster.node_of(worker));
    return push_and_pull(plan, stage, {Peer::member(kAggregatorRole, own_node)});
  }

private:
  std::pair<int, const char*> places_of(const Cluster& cluster) const {
    if (choice_.colocated) return {cluster.nodes(), "the nodes of the cluster (one server a node)"};
    return {cluster.server_nodes(), "the server nodes of the cluster (cluster.server_nodes)"};
  }

  // Returns the workers of an aggregator's node.
  static std::vector<Peer> workers_of_node(const StepPlan& plan) {
    const Cluster& cluster = *plan.scenario.cluster;
    std::vector<Peer> workers;
    for (int device = 0; device < cluster.node().devices; ++device) {
      Quantity index;
      index.axis = 0;
      for (int node = 0; node < cluster.nodes(); ++node)
        index.values.push_back(node * cluster.node().devices + device);
      workers.push_back(Peer::member(0, std::move(index)));
    }
    return workers;
  }

  Program aggregator(StepPlan& plan, const StageProgram& stage) const {
    const double devices = plan.scenario.cluster->node().devices;
    const Precision type = plan.scenario.training.gradient_precision;
    const Peer servers = Peer::each(kServersRole);
    const std::vector<Peer> workers = workers_of_node(plan);
    Program program;
    program.name = "aggregator";
    program.role = kAggregatorRole;
    program.streams = {"compute"};
    // A step starts to receive only after the step before has sent all its weights: the next gradients depend
    // on them.
    const int begin = add_op(program, idle_op(plan, program, "begin step"));
    Op end = idle_op(plan, program, "end step");
    for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
      const Bucket& bucket = stage.buckets[b];
      if (bucket.parameters == 0) continue;
      const std::string what = fmt::format("bucket {}", b);
      const double gradients = push_bytes(plan, bucket, 1), weights = pull_bytes(plan, bucket, 1);
      const auto tensor = [&](TensorKind kind, const char* name, Precision precision, double bytes,
                              Division division = {}) {
        return add_tensor(program, server_tensor(kind, fmt::format("{}, {}", name, what), bucket, precision,
                                                 bytes, division));
      };
      const int collected = tensor(TensorKind::buffer, "gradients of the node", type, devices * gradients,
                                   {1, static_cast<int>(workers.size())});
      const int sum = tensor(TensorKind::buffer, "sum", type, gradients);
      const int fresh = tensor(TensorKind::weight, "weights", plan.scenario.training.precision, weights);

      Op receive =
          bucket_exchange(program, "receive " + what, "receive", bucket, kReceive, workers, gradients);
      for (std::size_t w = 0; w < workers.size(); ++w) receive.messages[w].slot = static_cast<int>(w);
      receive.after = {{begin}};
      receive.writes = {collected};
      const int received = add_op(program, std::move(receive));

      Work work;
      if (devices > 1) work.kernels = {memory_kernel((devices + 1) * gradients)};  // reads all, writes one
      work.name = "add up " + what;
      work.precision = plan.scenario.training.precision;
      Op add = compute_op(plan, program, work.name, Pass::gradient_sync, work);
      add.first_layer = bucket.first_layer;
      add.last_layer = bucket.last_layer;
      add.action.kind = Action::Kind::add;
      add.after = {{received}};
      add.reads = {collected};
      add.writes = {sum};
      const int added = add_op(program, std::move(add));

      Op push = bucket_exchange(program, "push " + what, "push", bucket, kSend, {servers},
                                gradients / choice_.servers);
      push.messages.front().shared_out = true;
      push.after = {{added}};
      push.reads = {sum};
      const int pushed = add_op(program, std::move(push));

      Op pull = bucket_exchange(program, "pull " + what, "pull", bucket, kReceive, {servers},
                                weights / choice_.servers);
      pull.messages.front().shared_out = true;
      pull.after = {{pushed}};
      pull.writes = {fresh};
      const int pulled = add_op(program, std::move(pull));

      Op send = bucket_exchange(program, "send " + what, "send", bucket, kSend, workers, weights);
      send.after = {{pulled}};
      send.reads = {fresh};
      end.after.push_back({add_op(program, std::move(send))});
    }
    add_op(program, std::move(end));
    return program;
  }

  Choice choice_;
};

std::shared_ptr<const GradientStrategy> read(Section& strategy, StrategyChoice&) {
  Section own = strategy.section("hierarchical_parameter_server");
  constexpr std::array<std::string_view, 2> kPlacements = {"dedicated", "colocated"};
  Choice choice;
  choice.servers = static_cast<int>(own.integer("servers", 1, 100'000, 1));
  choice.colocated = own.choice("placement", kPlacements, 0) == 1;
  own.finish();
  return std::make_shared<HierarchicalServers>(choice);
}

}  // namespace

extern const GradientStrategyEntry kHierarchicalParameterServerStrategy{
    "hierarchical-parameter-server",
    "data parallel: each node sums its gradients, then exchanges them with servers",
    "Every GPU trains its share of the batch. The processor of each node sums what its GPUs push, and\n"
    "exchanges gradients and weights with the servers once for the node. The next step begins when all\n"
    "weights have arrived.\n"
    "TensorFlow's benchmarks call it distributed_replicated.",
    "data = 32\n"
    "gradients = \"hierarchical-parameter-server\"\n\n"
    "[strategy.hierarchical_parameter_server]\n"
    "servers = 4\n"
    "placement = \"colocated\"      # on the processors of the GPUs' nodes; \"dedicated\": on "
    "cluster.server_nodes\n",
    read};

}  // namespace rehearse
