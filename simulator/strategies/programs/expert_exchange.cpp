#include "simulator/strategies/programs/expert_exchange.hpp"

#include <algorithm>
#include <set>

#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

constexpr int kMesh = 1;  // the mesh of the experts

int expert_axis(const StepPlan& plan) {
  return plan.schedule.roles.front().meshes[kMesh].axis("expert");
}

// Returns the probability that a random choice of `chosen` of `all` experts has none of `some`: C(all - some,
// chosen) / C(all, chosen).
double chance_of_none(double some, double all, double chosen) {
  double none = 1;
  for (double i = 0; i < chosen; ++i) none *= std::max(0.0, all - some - i) / (all - i);
  return none;
}

// Returns the expected number of `places` that hold at least one of a token's experts, if they share all
// experts evenly, in order. The token chooses its groups with equal chances, then its experts from these
// groups.
double places_with_any(double places, const Transformer& t) {
  const double held = t.experts / places, group = t.experts / t.expert_groups,
               eligible = group * t.groups_per_token;
  if (held <= group)  // a part of one group, or one group
    return places * t.groups_per_token / t.expert_groups *
           (1 - chance_of_none(held, eligible, t.experts_per_token));
  // Several groups, of which any number can be among the chosen ones.
  const double groups = t.expert_groups / places;
  double none = 0, all_ways = 0;
  for (double here = 0; here <= std::min(groups, t.groups_per_token); ++here) {
    double ways = 1;  // C(groups, here) C(others, rest) / C(all, chosen)
    for (double i = 0; i < here; ++i)
      ways *= (groups - i) * (t.groups_per_token - i) / ((i + 1) * (t.expert_groups - i));
    for (double i = 0; i < t.groups_per_token - here; ++i)
      ways *= std::max(0.0, t.expert_groups - groups - i) / (t.expert_groups - here - i);
    none += ways * chance_of_none(here * group, eligible, t.experts_per_token);
    all_ways += ways;
  }
  return places * (1 - none / all_ways);
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
  // Rows travel to the experts' rank, or back from it.
  const bool outwards = (change.maker == SegmentKind::dispatch) != of_gradient;
  for (const auto way : {Message::Direction::send, Message::Direction::receive})
    for (int far = 1; far < ranks; ++far) {
      const bool send = way == Message::Direction::send;
      Message message;
      message.direction = way;
      message.peer = Peer::along(axis, send ? far : -far, true, kMesh);
      message.tag = 1;  // tag 0 is used by the ring attention messages to the same ranks
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

double dispatched_share(const Scenario& scenario, std::span<const Endpoint> endpoints) {
  const ExpertDispatch dispatch = scenario.strategy.expert_dispatch;
  if (dispatch == ExpertDispatch::experts) return 1;
  auto places = static_cast<double>(endpoints.size());
  if (dispatch == ExpertDispatch::nodes) {
    std::set<int> nodes;
    for (const Endpoint endpoint : endpoints) nodes.insert(scenario.cluster->node_of(endpoint));
    if (nodes.size() > 1) places = static_cast<double>(nodes.size());
  }
  const auto& t = std::get<Transformer>(scenario.model.shape);
  return places_with_any(places, t) / t.experts_per_token;
}

Quantity expert_share(const StepPlan& plan, int layer) {
  Quantity share;
  share.axis = expert_axis(plan);
  share.mesh = kMesh;
  share.values = loads_of(plan, layer);
  return share;
}

}  // namespace rehearse
