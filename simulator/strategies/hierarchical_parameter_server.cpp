// Parameter servers behind one aggregator a node: the GPUs of a node give their gradients to the node's
// processor, which adds them up, exchanges with the servers for all of them, and hands out the new weights.
// The network carries every gradient once a node. TensorFlow's tf_cnn_benchmarks call it
// distributed_replicated; MXNet's dist_sync and BytePS (Jiang et al., OSDI 2020) do alike. All weights are
// there before the next step begins.
#include <fmt/format.h>

#include "models/base/document.hpp"
#include "models/base/error.hpp"
#include "models/kernels.hpp"
#include "simulator/costs/memory.hpp"
#include "simulator/strategies/gradient_strategy.hpp"
#include "simulator/strategies/pipeline.hpp"

namespace rehearse {
namespace {

constexpr int kAggregatorRole = 1, kServerRole = 2;

struct Choice {
  int servers = 1;
  bool colocated = true;  // on the processors of the workers' nodes; else on server nodes of their own
};

class HierarchicalServers : public GradientStrategy {
public:
  explicit HierarchicalServers(Choice choice) : choice_(choice) {}

  std::string headline(const Scenario&) const override {
    return fmt::format("{} parameter server{}, added up in each node", choice_.servers,
                       choice_.servers == 1 ? "" : "s");
  }

  void fit(Section& strategy, const Scenario& scenario) const override {
    if (scenario.strategy.pipeline > 1)
      strategy.refuse("gradients",
                      fmt::format("\"hierarchical-parameter-server\" with a pipeline of {} stages",
                                  scenario.strategy.pipeline),
                      "it without a pipeline");
    const Section own = strategy.section("hierarchical_parameter_server");
    const auto [places, what] = places_of(*scenario.cluster);
    if (choice_.servers > places)
      own.refuse("servers", fmt::format("{}", choice_.servers), fmt::format("at most {}, {}", places, what));
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
    const std::vector<StageProgram> stages =
        write_stages(plan, {true, false}, [&](StageProgram& stage) { write_worker(plan, stage); });
    plan.schedule.programs.push_back(aggregator(plan, stages.front()));
    plan.schedule.programs.push_back(server(plan, stages.front()));
  }

private:
  std::pair<int, const char*> places_of(const Cluster& cluster) const {
    if (choice_.colocated) return {cluster.nodes(), "the nodes of the cluster (one server a node)"};
    return {cluster.server_nodes(), "the server nodes of the cluster (cluster.server_nodes)"};
  }

  static double weight_bytes(const StepPlan& plan, const Bucket& bucket) {
    return bucket.parameters * element_bytes(plan.scenario.training.precision);
  }

  static Op exchange(Program& program, std::string name, const std::string& stream, const Bucket& bucket) {
    Op op;
    op.name = std::move(name);
    op.kind = OpKind::exchange;
    op.stream = stream_named(program, stream);
    op.pass = Pass::gradient_sync;
    op.first_layer = bucket.first_layer;
    op.last_layer = bucket.last_layer;
    return op;
  }

  static void add_message(Op& op, Message::Direction direction, Peer peer, double bytes) {
    Message message;
    message.direction = direction;
    message.peer = std::move(peer);
    message.bytes = bytes;
    op.messages.push_back(std::move(message));
  }

  // The workers of an aggregator's node, one message each.
  static void add_messages_of_node(const StepPlan& plan, Op& op, Message::Direction direction, double bytes) {
    const Cluster& cluster = *plan.scenario.cluster;
    for (int device = 0; device < cluster.node().devices; ++device) {
      Quantity index;
      index.axis = 0;
      for (int node = 0; node < cluster.nodes(); ++node)
        index.values.push_back(node * cluster.node().devices + device);
      add_message(op, direction, Peer::member(0, std::move(index)), bytes);
    }
  }

  static int add_buffer(Program& program, const char* what, const Bucket& bucket, std::size_t b,
                        Precision type, double bytes, TensorKind kind = TensorKind::buffer) {
    Tensor t;
    t.kind = kind;
    t.name = fmt::format("{}, bucket {}", what, b);
    t.first_layer = bucket.first_layer;
    t.last_layer = bucket.last_layer;
    t.type = type;
    t.bytes = bytes;
    return add_tensor(program, std::move(t));
  }

  static void write_worker(StepPlan& plan, StageProgram& stage) {
    if (stage.parameters() == 0) return;
    const bool overlap = plan.scenario.strategy.overlap;
    const Cluster& cluster = *plan.scenario.cluster;
    Quantity own_node;
    own_node.axis = plan.data_axis;
    for (int worker = 0; worker < cluster.devices(); ++worker)
      own_node.values.push_back(cluster.node_of(worker));
    const Peer up = Peer::member(kAggregatorRole, own_node);
    std::vector<int> pushed(stage.buckets.size(), -1);
    for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
      const Bucket& bucket = stage.buckets[b];
      if (bucket.parameters == 0) continue;
      Op op = exchange(stage.program, fmt::format("push bucket {}", b), overlap ? "push" : "compute", bucket);
      add_message(op, Message::Direction::send, up, gradient_bytes(plan, bucket));
      op.reads = {stage.gradients[b]};
      if (overlap) op.after = {{stage.backward_of_bucket[b]}};
      pushed[b] = add_op(stage.program, std::move(op));
    }
    Op end = marker(plan, stage, "end step");
    for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
      const Bucket& bucket = stage.buckets[b];
      if (pushed[b] < 0) continue;
      Op op = exchange(stage.program, fmt::format("pull bucket {}", b), overlap ? "pull" : "compute", bucket);
      add_message(op, Message::Direction::receive, up, weight_bytes(plan, bucket));
      op.writes = {stage.weights[b]};
      // New weights land in the place of the old ones, which the backward pass still reads.
      if (overlap) op.after = {{pushed[b]}};
      end.after.push_back({add_op(stage.program, std::move(op))});
    }
    add_op(stage.program, std::move(end));
  }

  static Op compute(StepPlan& plan, Program& program, std::string name, Pass pass, const Bucket& bucket,
                    Work work) {
    work.name = name;
    work.precision = plan.scenario.training.precision;
    plan.schedule.works.push_back(std::move(work));
    Op op;
    op.name = std::move(name);
    op.stream = stream_named(program, "compute");
    op.pass = pass;
    op.first_layer = bucket.first_layer;
    op.last_layer = bucket.last_layer;
    op.work = static_cast<int>(plan.schedule.works.size()) - 1;
    return op;
  }

  // Nothing of the next step is received before all weights of this one are sent: its gradients follow from
  // them.
  static Op idle(StepPlan& plan, Program& program, const char* name) {
    return compute(plan, program, name, Pass::other, {-1, -1, 0}, {});
  }

  Program aggregator(StepPlan& plan, const StageProgram& stage) const {
    const double devices = plan.scenario.cluster->node().devices;
    const Precision type = plan.scenario.training.gradient_precision;
    const Peer servers = Peer::each(kServerRole);
    Program program;
    program.name = "aggregator";
    program.role = kAggregatorRole;
    program.streams = {"compute"};
    const int begin = add_op(program, idle(plan, program, "begin step"));
    Op end = idle(plan, program, "end step");
    for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
      const Bucket& bucket = stage.buckets[b];
      if (bucket.parameters == 0) continue;
      const double gradients = gradient_bytes(plan, bucket), weights = weight_bytes(plan, bucket);
      const int collected =
          add_buffer(program, "gradients of the node", bucket, b, type, devices * gradients);
      const int sum = add_buffer(program, "sum", bucket, b, type, gradients);
      const int fresh = add_buffer(program, "weights", bucket, b, plan.scenario.training.precision, weights,
                                   TensorKind::weight);

      Op receive = exchange(program, fmt::format("receive bucket {}", b), "receive", bucket);
      add_messages_of_node(plan, receive, Message::Direction::receive, gradients);
      receive.after = {{begin}};
      receive.writes = {collected};
      const int received = add_op(program, std::move(receive));

      Work work;
      if (devices > 1) work.kernels.push_back(moves((devices + 1) * gradients));  // reads all, writes one
      Op add = compute(plan, program, fmt::format("add up bucket {}", b), Pass::gradient_sync, bucket,
                       std::move(work));
      add.after = {{received}};
      add.reads = {collected};
      add.writes = {sum};
      const int added = add_op(program, std::move(add));

      Op push = exchange(program, fmt::format("push bucket {}", b), "push", bucket);
      add_message(push, Message::Direction::send, servers, gradients / choice_.servers);
      push.after = {{added}};
      push.reads = {sum};
      const int pushed = add_op(program, std::move(push));

      Op pull = exchange(program, fmt::format("pull bucket {}", b), "pull", bucket);
      add_message(pull, Message::Direction::receive, servers, weights / choice_.servers);
      pull.after = {{pushed}};
      pull.writes = {fresh};
      const int pulled = add_op(program, std::move(pull));

      Op send = exchange(program, fmt::format("send bucket {}", b), "send", bucket);
      add_messages_of_node(plan, send, Message::Direction::send, weights);
      send.after = {{pulled}};
      send.reads = {fresh};
      end.after.push_back({add_op(program, std::move(send))});
    }
    add_op(program, std::move(end));
    return program;
  }

  Program server(StepPlan& plan, const StageProgram& stage) const {
    const Training& training = plan.scenario.training;
    const StateBytes state = state_bytes(training.optimizer, training.precision, training.gradient_precision);
    const double nodes = plan.scenario.cluster->nodes();
    const Peer aggregators = Peer::each(kAggregatorRole);
    Program program;
    program.name = "server";
    program.role = kServerRole;
    program.streams = {"compute"};
    const int begin = add_op(program, idle(plan, program, "begin step"));
    Op end = idle(plan, program, "end step");
    for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
      const Bucket& bucket = stage.buckets[b];
      if (bucket.parameters == 0) continue;
      const double share = bucket.parameters / choice_.servers;
      const double gradients = gradient_bytes(plan, bucket) / choice_.servers;
      const int collected =
          add_buffer(program, "pushed gradients", bucket, b, training.gradient_precision, nodes * gradients);
      const int weights = add_buffer(program, "weights", bucket, b, training.precision, share * state.weight,
                                     TensorKind::weight);

      Op receive = exchange(program, fmt::format("receive bucket {}", b), "receive", bucket);
      add_message(receive, Message::Direction::receive, aggregators, gradients);
      receive.after = {{begin}};
      receive.writes = {collected};
      const int received = add_op(program, std::move(receive));

      Work work;
      work.parameters_updated = share;
      work.optimizer_bytes =
          share * update_bytes(training.optimizer, training.precision, training.gradient_precision);
      if (nodes > 1) work.kernels.push_back(moves((nodes - 1) * gradients));  // the update has counted one
      Op update = compute(plan, program, fmt::format("update bucket {}", b), Pass::optimizer, bucket,
                          std::move(work));
      update.after = {{received}};
      update.reads = {collected};
      update.writes = {weights};
      if (state.optimizer > 0)
        update.writes.push_back(add_buffer(program, "optimizer state", bucket, b, Precision::fp32,
                                           share * state.optimizer, TensorKind::optimizer_state));
      const int updated = add_op(program, std::move(update));

      Op send = exchange(program, fmt::format("send bucket {}", b), "send", bucket);
      add_message(send, Message::Direction::send, aggregators, weight_bytes(plan, bucket) / choice_.servers);
      send.after = {{updated}};
      send.reads = {weights};
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
    "data parallel: each node adds up its gradients and talks to servers for all",
    "Every GPU trains its share of the batch. The processor of each node adds up what its GPUs push and "
    "exchanges\n"
    "gradients and weights with the servers once for the node. The next step begins when all weights are "
    "there.\n"
    "TensorFlow's benchmarks call it distributed_replicated.",
    "data = 32\n"
    "gradients = \"hierarchical-parameter-server\"\n\n"
    "[strategy.hierarchical_parameter_server]\n"
    "servers = 4\n"
    "placement = \"colocated\"      # on the processors of the GPUs' nodes; \"dedicated\": on "
    "cluster.server_nodes\n",
    read};

}  // namespace rehearse
