// Synchronous parameter servers: workers push gradients, servers update, workers pull the new weights.
// Li et al., "Scaling Distributed Machine Learning with the Parameter Server" (OSDI 2014), synchronously,
// each bucket cut into equal shares over all servers (as BytePS does: Jiang et al., OSDI 2020).
#include <fmt/format.h>

#include "models/base/document.hpp"
#include "models/base/error.hpp"
#include "simulator/costs/memory.hpp"
#include "simulator/strategies/gradient_strategy.hpp"
#include "simulator/strategies/pipeline.hpp"

namespace rehearse {
namespace {

constexpr int kServerRole = 1;

double servers(const StepPlan& plan) {
  return plan.scenario.strategy.parameter_server.servers;
}

// What goes between one worker and one server for a bucket.
double push_bytes(const StepPlan& plan, const Bucket& bucket) {
  return gradient_bytes(plan, bucket) / servers(plan);
}
double pull_bytes(const StepPlan& plan, const Bucket& bucket) {
  return bucket.parameters * element_bytes(plan.scenario.training.precision) / servers(plan);
}

Op exchange(Program& program, std::string name, const std::string& stream, const Bucket& bucket,
            Message::Direction direction, Peer peer, double bytes) {
  Op op;
  op.name = std::move(name);
  op.kind = OpKind::exchange;
  op.stream = stream_named(program, stream);
  op.pass = Pass::gradient_sync;
  op.first_layer = bucket.first_layer;
  op.last_layer = bucket.last_layer;
  Message message;
  message.direction = direction;
  message.peer = std::move(peer);
  message.bytes = bytes;
  op.messages.push_back(std::move(message));
  return op;
}

Tensor tensor(TensorKind kind, std::string name, const Bucket& bucket, int shard, Precision type,
              double bytes) {
  Tensor t;
  t.kind = kind;
  t.name = std::move(name);
  t.first_layer = bucket.first_layer;
  t.last_layer = bucket.last_layer;
  t.shard = shard;
  t.type = type;
  t.bytes = bytes;
  return t;
}

// The worker's part. With `overlap` a bucket is pushed as soon as its backward pass is done, and the next
// step's forward pass waits for each bucket's weights only when it comes to their layers. Without, the step
// ends with all pushes and then all pulls.
void write_push_and_pull(StepPlan& plan, StageProgram& stage) {
  if (stage.parameters() == 0) return;
  const bool overlap = plan.scenario.strategy.overlap;
  const Peer all_servers = Peer::each(kServerRole);
  const auto push = [&](std::size_t b) {
    Op op =
        exchange(stage.program, fmt::format("push bucket {}", b), overlap ? "push" : "compute",
                 stage.buckets[b], Message::Direction::send, all_servers, push_bytes(plan, stage.buckets[b]));
    op.reads = {stage.gradients[b]};
    if (overlap) op.after = {{stage.backward_of_bucket[b]}};
    return add_op(stage.program, std::move(op));
  };
  const auto pull = [&](std::size_t b, int pushed) {
    Op op = exchange(stage.program, fmt::format("pull bucket {}", b), overlap ? "pull" : "compute",
                     stage.buckets[b], Message::Direction::receive, all_servers,
                     pull_bytes(plan, stage.buckets[b]));
    op.writes = {stage.weights[b]};
    if (overlap) op.after = {{pushed}};
    return add_op(stage.program, std::move(op));
  };
  std::vector<int> pushed(stage.buckets.size(), -1);
  for (std::size_t b = 0; b < stage.buckets.size(); ++b)
    if (stage.buckets[b].parameters > 0) pushed[b] = push(b);
  for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
    if (pushed[b] < 0) continue;
    const int pulled = pull(b, pushed[b]);
    if (overlap) stage.program.ops[stage.forward_of_bucket[b]].after.push_back({pulled, 1});
  }
}

// For every stage a stream that receives and one that sends, and one that updates.
Program server_program(StepPlan& plan, const std::vector<StageProgram>& stages) {
  const Training& training = plan.scenario.training;
  const StateBytes state = state_bytes(training.optimizer, training.precision, training.gradient_precision);
  const double workers = plan.scenario.strategy.data;
  Program program;
  program.name = "server";
  program.role = kServerRole;
  program.streams = {"compute"};

  const auto idle = [&](const char* name) {
    Work work;
    work.name = name;
    work.precision = training.precision;
    plan.schedule.works.push_back(std::move(work));
    Op op;
    op.name = name;
    op.work = static_cast<int>(plan.schedule.works.size()) - 1;
    return op;
  };
  // Nothing of the next step is received before all weights of this one are sent: its gradients follow from
  // them.
  const int begin = add_op(program, idle("begin step"));
  Op end = idle("end step");

  // The last stage's gradients are ready first.
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    const Peer workers_of_stage = Peer::each(0, at_stage(plan, stage->stage));
    const std::string of = stages.size() > 1 ? fmt::format(" of stage {}", stage->stage) : std::string();
    int sent = -1;
    for (std::size_t b = 0; b < stage->buckets.size(); ++b) {
      const Bucket& bucket = stage->buckets[b];
      if (bucket.parameters == 0) continue;
      const double share = bucket.parameters / servers(plan);
      const std::string what = fmt::format("bucket {}{}", b, of);
      const int shard = 0;  // each server has its own
      const int pushed =
          add_tensor(program, tensor(TensorKind::buffer, "pushed gradients, " + what, bucket, shard,
                                     training.gradient_precision, workers * push_bytes(plan, bucket)));
      const int weights = add_tensor(program, tensor(TensorKind::weight, "weights, " + what, bucket, shard,
                                                     training.precision, share * state.weight));
      Op receive = exchange(program, "receive " + what, "receive" + of, bucket, Message::Direction::receive,
                            workers_of_stage, push_bytes(plan, bucket));
      receive.after = {{begin}};
      receive.writes = {pushed};
      const int received = add_op(program, std::move(receive));

      Work work;
      work.name = "update " + what;
      work.precision = training.precision;
      work.parameters_updated = share;
      work.optimizer_bytes =
          share * update_bytes(training.optimizer, training.precision, training.gradient_precision);
      if (workers > 1) {  // the sum of all workers' gradients reads them once; the update has counted one
        Kernel sum;
        sum.kind = Kernel::Kind::memory;
        sum.bytes = (workers - 1) * push_bytes(plan, bucket);
        work.kernels.push_back(sum);
      }
      plan.schedule.works.push_back(std::move(work));
      Op update;
      update.name = "update " + what;
      update.stream = stream_named(program, "compute");
      update.pass = Pass::optimizer;
      update.first_layer = bucket.first_layer;
      update.last_layer = bucket.last_layer;
      update.work = static_cast<int>(plan.schedule.works.size()) - 1;
      update.after = {{received}};
      update.reads = {pushed};
      update.writes = {weights};
      if (state.optimizer > 0)
        update.writes.push_back(
            add_tensor(program, tensor(TensorKind::optimizer_state, "optimizer state, " + what, bucket, shard,
                                       Precision::fp32, share * state.optimizer)));
      const int updated = add_op(program, std::move(update));

      Op send = exchange(program, "send " + what, "send" + of, bucket, Message::Direction::send,
                         workers_of_stage, pull_bytes(plan, bucket));
      send.after = {{updated}};
      send.reads = {weights};
      sent = add_op(program, std::move(send));
    }
    if (sent >= 0) end.after.push_back({sent});
  }
  add_op(program, std::move(end));
  return program;
}

class ParameterServers : public GradientStrategy {
public:
  std::string headline(const Scenario& scenario) const override {
    const int servers = scenario.strategy.parameter_server.servers;
    return fmt::format("{} parameter server{}", servers, servers == 1 ? "" : "s");
  }

  void fit(Section& strategy, const Scenario& scenario) const override {
    const Section own = strategy.section("parameter_server");
    const ParameterServer& choice = scenario.strategy.parameter_server;
    const Cluster& cluster = *scenario.cluster;
    const int nodes = choice.colocated ? cluster.nodes() : cluster.server_nodes();
    if (choice.servers > nodes) {
      own.refuse("servers", fmt::format("{}", choice.servers),
                 fmt::format("at most {}, {}", nodes,
                             choice.colocated ? "the nodes of the cluster (one server a node)"
                                              : "the server nodes of the cluster (cluster.server_nodes)"));
    }
    // Each worker sends to each server, so that their pairs are bounded before they are written.
    constexpr std::int64_t kMaxPairs = 1'048'576;
    if (static_cast<std::int64_t>(choice.servers) * cluster.devices() > kMaxPairs) {
      own.refuse("servers", fmt::format("{}, each with {} workers", choice.servers, cluster.devices()),
                 cluster.devices() < kMaxPairs
                     ? fmt::format("at most {} for so many workers", kMaxPairs / cluster.devices())
                     : fmt::format("at most {} workers", kMaxPairs));
    }
  }

  void write(StepPlan& plan) const override {
    add_servers(plan);
    const std::vector<StageProgram> stages =
        write_stages(plan, {true, true}, [&](StageProgram& stage) { write_push_and_pull(plan, stage); });
    plan.schedule.programs.push_back(server_program(plan, stages));
    if (plan.tied_parameters > 0)
      plan.notes.push_back(
          "First and last stage each keep the tied embedding, and the servers update it for both.");
  }

private:
  // Servers sit on processors: of nodes of their own, or spread over the workers' nodes.
  static void add_servers(StepPlan& plan) {
    const ParameterServer& choice = plan.scenario.strategy.parameter_server;
    const Cluster& cluster = *plan.scenario.cluster;
    if (!choice.colocated && choice.servers > cluster.server_nodes())
      throw InputError({plan.scenario.name, 0, 0},
                       fmt::format("strategy.parameter_server.servers is {}; allowed: at most {}, the "
                                   "cluster's server_nodes, or placement \"colocated\"",
                                   choice.servers, cluster.server_nodes()));
    plan.schedule.roles.push_back({"server", {Mesh({{"server", choice.servers}})}});
    for (int i = 0; i < choice.servers; ++i) {
      const long node = static_cast<long>(i) * cluster.nodes() / choice.servers;
      plan.endpoints.push_back(choice.colocated ? cluster.processor_of_node(static_cast<int>(node))
                                                : cluster.server_processor(i));
    }
  }
};

std::shared_ptr<const GradientStrategy> read(Section& strategy, StrategyChoice& choice) {
  Section own = strategy.section("parameter_server");
  constexpr std::array<std::string_view, 2> kPlacements = {"dedicated", "colocated"};
  choice.parameter_server.servers = static_cast<int>(own.integer("servers", 1, 100'000, 1));
  choice.parameter_server.colocated = own.choice("placement", kPlacements, 0) == 1;
  constexpr std::array<std::string_view, 1> kModes = {"sync"};
  own.choice("mode", kModes, 0);
  own.integer("staleness", 0, 0, 0);
  own.finish();
  return std::make_shared<ParameterServers>();
}

}  // namespace

extern const GradientStrategyEntry kParameterServerStrategy{
    "parameter-server", "data parallel: gradients go to servers, which send new weights back",
    "Every GPU trains its share of the batch. Servers on processors keep a shard of the weights each, add "
    "up\n"
    "what all GPUs push, update, and are read before the next forward pass.",
    "data = 8\n"
    "gradients = \"parameter-server\"\n\n"
    "[strategy.parameter_server]\n"
    "servers = 4\n"
    "placement = \"dedicated\"     # on cluster.server_nodes of their own; \"colocated\": on the GPUs' "
    "nodes\n",
    read};

}  // namespace rehearse
