#include "simulator/strategies/programs/expert_exchange.hpp"

#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

constexpr int kMesh = 1;  // that of the experts

int expert_axis(const StepPlan& plan) {
  return plan.schedule.roles.front().meshes[kMesh].axis("expert");
}

const std::vector<double>& loads_of(const StepPlan& plan, int layer) {
  return plan.expert_loads[static_cast<std::size_t>(layer)];
}

}  // namespace

bool is_expert_exchange(const ValueChange& change) {
  return change.change.kind == Change::Kind::all_to_all &&
         (change.maker == SegmentKind::dispatch || change.maker == SegmentKind::expert_down);
}

bool uneven_experts(const StepPlan& plan) {
  return !plan.expert_loads.empty();
}

Op expert_exchange(const StepPlan& plan, const Program& program, const ValueChange& change, Pass pass,
                   bool of_gradient) {
  Op op = change_op(plan, program, change, pass);
  const double mean_bytes = op.collective.bytes.base;
  op.kind = OpKind::exchange;
  op.collective = {};
  const std::vector<double>& loads = loads_of(plan, change.layer);
  const int axis = expert_axis(plan), ranks = static_cast<int>(loads.size());
  // Rows go to the experts' rank, or come from there.
  const bool outwards = (change.maker == SegmentKind::dispatch) != of_gradient;
  for (const auto way : {Message::Direction::send, Message::Direction::receive})
    for (int far = 1; far < ranks; ++far) {
      const bool send = way == Message::Direction::send;
      Message message;
      message.direction = way;
      message.peer = Peer::along(axis, send ? far : -far, true, kMesh);
      message.tag = 1;  // 0 is for what attention in a ring sends to the same ranks
      message.bytes.axis = axis;
      message.bytes.mesh = kMesh;
      for (int own = 0; own < ranks; ++own) {
        const int peer = (own + (send ? far : ranks - far)) % ranks;
        const int experts = outwards == send ? peer : own;
        message.bytes.values.push_back(mean_bytes * loads[static_cast<std::size_t>(experts)]);
      }
      op.messages.push_back(std::move(message));
    }
  return op;
}

Quantity expert_share(const StepPlan& plan, int layer) {
  Quantity share;
  share.axis = expert_axis(plan);
  share.mesh = kMesh;
  share.values = loads_of(plan, layer);
  return share;
}

}  // namespace rehearse
