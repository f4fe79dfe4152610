// The worker's part of strategies with servers, and the ops and tensors that their servers share.
#include <fmt/format.h>

#include "simulator/costs/memory.hpp"
#include "simulator/strategies/gradients/parameter_server.hpp"
#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {

double push_bytes(const StepPlan& plan, const Bucket& bucket, int servers) {
  return gradient_bytes(plan, bucket) / servers;
}
double pull_bytes(const StepPlan& plan, const Bucket& bucket, int servers) {
  return bucket.parameters * element_bytes(plan.scenario.training.precision) / servers;
}

Tensor server_tensor(TensorKind kind, std::string name, const Bucket& bucket, Precision type, double bytes,
                     Division division) {
  Tensor t;
  t.kind = kind;
  t.name = std::move(name);
  t.first_layer = bucket.first_layer;
  t.last_layer = bucket.last_layer;
  t.shards = division.shards;
  t.slot_count = division.slot_count;
  t.type = type;
  t.bytes = bytes;
  return t;
}

Op idle_op(StepPlan& plan, Program& program, const char* name) {
  Work work;
  work.name = name;
  work.precision = plan.scenario.training.precision;
  return compute_op(plan, program, name, Pass::other, std::move(work));
}

Work update_work(const StepPlan& plan, const Bucket& bucket, int servers) {
  const Training& training = plan.scenario.training;
  const double share = bucket.parameters / servers;
  Work work;
  work.name = "update";
  work.precision = training.precision;
  work.parameters_updated = share;
  work.optimizer_bytes =
      share * update_bytes(training.optimizer, training.precision, training.gradient_precision);
  return work;
}

Op update_op(Program& program, std::string name, const std::string& stream, const Bucket& bucket, int work) {
  Op op;
  op.name = std::move(name);
  op.stream = stream_named(program, stream);
  op.pass = Pass::optimizer;
  op.action.kind = Action::Kind::update;
  op.first_layer = bucket.first_layer;
  op.last_layer = bucket.last_layer;
  op.work = work;
  return op;
}

namespace {

class PushAndPull : public StageHooks {
public:
  PushAndPull(StepPlan& plan, int stage, const Servers& servers)
      : StageHooks(plan, begin_stage(plan, stage, {true, servers.pulls_in_next_step})),
        servers_(servers),
        overlaps_(plan.scenario.strategy.overlap),
        pushed_(stage_.buckets.size(), -1) {}

  void send_bucket(std::size_t b, int complete) override {
    Op op =
        exchange("push", b, Message::Direction::send, push_bytes(plan_, stage_.buckets[b], servers_.count));
    op.reads = {stage_.gradients[b]};
    if (overlaps_) op.after = {{complete}};
    pushed_[b] = add_op(stage_.program, std::move(op));
  }

  // The servers update the weights.
  void end_of_step() override {
    std::vector<Dependency> pulled;
    for (std::size_t b = 0; b < stage_.buckets.size(); ++b) {
      if (pushed_[b] < 0) continue;
      Op op = exchange("pull", b, Message::Direction::receive,
                       pull_bytes(plan_, stage_.buckets[b], servers_.count));
      op.writes = {stage_.weights[b]};
      // New weights overwrite the old ones, which the backward pass still reads.
      if (overlaps_) op.after = {{pushed_[b]}};
      pulled.push_back({add_op(stage_.program, std::move(op))});
      if (overlaps_ && servers_.pulls_in_next_step) before_first_use(b, pulled.back().op);
    }
    if (servers_.pulls_in_next_step) return;
    Op end = marker(plan_, stage_, "end step");
    end.after = std::move(pulled);
    add_op(stage_.program, std::move(end));
  }

private:
  Op exchange(const char* way, std::size_t b, Message::Direction direction, double bytes) {
    Op op = bucket_exchange(stage_.program, fmt::format("{} bucket {}", way, b), overlaps_ ? way : "compute",
                            stage_.buckets[b], direction, {servers_.peer}, bytes);
    op.messages.front().shared_out = servers_.peer.kind == Peer::Kind::each;
    return op;
  }

  const Servers servers_;
  const bool overlaps_;
  std::vector<int> pushed_;  // by bucket
};

}  // namespace

std::unique_ptr<StageHooks> push_and_pull(StepPlan& plan, int stage, const Servers& servers) {
  return std::make_unique<PushAndPull>(plan, stage, servers);
}

}  // namespace rehearse
