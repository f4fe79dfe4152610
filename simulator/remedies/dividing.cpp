#include <fmt/format.h>

#include <array>
#include <string_view>

#include "simulator/remedies/remedy_kinds.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

// A degree of the workers' mesh that can be changed. Fewer ranks on an axis save at most what waits for it
// and a share of the compute time: kernels of larger parts are more efficient.
struct MovedAxis {
  std::string_view name;
  int (*degree)(const StrategyChoice&);
  double (*waiting_s)(const Situation&);
  double compute_share;
};
constexpr std::array<MovedAxis, 4> kMoved = {
    {{"tensor", [](const StrategyChoice& s) { return s.tensor; },
      [](const Situation& now) { return now.waiting_s(Purpose::tensor); }, 0.3},
     {"context", [](const StrategyChoice& s) { return s.context; },
      [](const Situation& now) { return now.waiting_s(Purpose::context); }, 0.15},
     {"pipeline", [](const StrategyChoice& s) { return s.pipeline; },
      [](const Situation& now) { return now.bubble_s() + now.waiting_s(Purpose::pipeline); }, 0.05},
     {"data", [](const StrategyChoice& s) { return s.data; },
      [](const Situation& now) {
        return now.waiting_s(Purpose::gradient_sync) + now.waiting_s(Purpose::weights);
      },
      0.05}}};

bool is_transformer(const Scenario& scenario) {
  return std::holds_alternative<Transformer>(scenario.model.shape);
}

// Returns whether the ranks with the same weights could shard optimizer state, but do not.
bool could_shard(const Scenario& scenario) {
  const auto strategy = gradient_strategy(scenario);
  return !strategy->shared_state(scenario) && strategy->sharded(1) != nullptr;
}

}  // namespace

void move_ranks_between_axes(const Situation& now, Remedies& found) {
  const Scenario& s = now.scenario;
  const StrategyChoice& strategy = s.strategy;
  if (is_profiled(s.model)) return;
  for (const MovedAxis& from : kMoved)
    for (const MovedAxis& to : kMoved) {
      if (from.name == to.name) continue;
      const bool splits_layers = to.name == "tensor" || to.name == "context";
      if (splits_layers && !is_transformer(s)) continue;
      for (const int times : {2, 4, 8}) {
        const int old = from.degree(strategy);
        if (old % times != 0) break;
        const int fewer = old / times, more = to.degree(strategy) * times;
        Remedy remedy{
            fmt::format("a smaller {} and a larger {} degree", from.name, to.name),
            {fmt::format("strategy.{}={}", from.name, fewer), fmt::format("strategy.{}={}", to.name, more)},
            from.waiting_s(now) + from.compute_share * now.compute_s()};
        // The degree that a scenario leaves out follows from the others, unless it is neither of these two.
        for (const MovedAxis& rest : kMoved)
          if ((rest.name == "pipeline" || rest.name == "data") && rest.name != from.name &&
              rest.name != to.name)
            remedy.sets.push_back(fmt::format("strategy.{}={}", rest.name, rest.degree(strategy)));
        // A mirrored order fixes the number of virtual stages, and needs more layers than stages.
        if (order_of(strategy.schedule).mirrored)
          remedy.sets.insert(remedy.sets.end(), {"strategy.schedule=", "strategy.virtual_stages="});
        if (to.name == "tensor" && strategy.tensor == 1)
          remedy.sets.emplace_back("strategy.sequence_parallel=true");
        found.push_back(remedy);
        if (to.name == "data" && could_shard(s)) {
          remedy.why += ", which shards the optimizer's state";
          remedy.sets.emplace_back("strategy.zero_stage=1");
          found.push_back(remedy);
        }
      }
    }
}

void change_schedule(const Situation& now, Remedies& found) {
  const StrategyChoice& strategy = now.scenario.strategy;
  if (strategy.pipeline == 1) return;
  const double at_most_s = now.bubble_s() + now.waiting_s(Purpose::pipeline);
  if (!strategy.stage_layers.empty())
    found.push_back(
        {"layers are divided among the stages by their time", {"strategy.stage_layers="}, at_most_s});
  const auto add = [&](std::string why, PipelineSchedule schedule, int chunks) {
    if (schedule == strategy.schedule && chunks == strategy.virtual_stages) return;
    const std::string_view name = kPipelineScheduleNames[static_cast<std::size_t>(schedule)];
    Remedy remedy{std::move(why), {}, at_most_s};
    if (schedule != strategy.schedule) remedy.sets.push_back(fmt::format("strategy.schedule={}", name));
    const OrderEntry& entry = order_of(schedule);
    remedy.sets.push_back(entry.fewest_chunks == entry.most_chunks
                              ? "strategy.virtual_stages="
                              : fmt::format("strategy.virtual_stages={}", chunks));
    if (!strategy.stage_layers.empty()) remedy.sets.emplace_back("strategy.stage_layers=");
    found.push_back(std::move(remedy));
  };
  const bool chunked = strategy.virtual_stages > 1 && strategy.schedule != PipelineSchedule::zb_v;
  const int chunks = chunked ? strategy.virtual_stages : 1;
  if (order_of(strategy.schedule).mirrored) return;
  for (const int times : {2, 4})
    add(fmt::format("{} virtual stages make the bubble shorter", times * chunks),
        PipelineSchedule::interleaved, times * chunks);
  if (chunks % 2 == 0 && chunks > 2) add("fewer virtual stages send less", strategy.schedule, chunks / 2);
  if (strategy.schedule != PipelineSchedule::one_f_one_b)
    add("1F1B stores fewer activations and sends less", PipelineSchedule::one_f_one_b, 1);
  add("split backward passes fill part of the bubble", PipelineSchedule::zb_h1, 1);
  add("stages that hold two parts of the model fill the bubble", PipelineSchedule::zb_v, 2);
}

void change_experts(const Situation& now, Remedies& found) {
  const StrategyChoice& strategy = now.scenario.strategy;
  const auto* model = std::get_if<Transformer>(&now.scenario.model.shape);
  if (!model || model->experts <= 0) return;
  const double at_most_s = now.waiting_s(Purpose::experts) + now.other_s() + 0.2 * now.compute_s();
  for (const int times : {2, 4}) {
    if (strategy.expert % times == 0)
      found.push_back({"a smaller expert degree sends fewer rows",
                       {fmt::format("strategy.expert={}", strategy.expert / times)},
                       now.waiting_s(Purpose::experts) + now.other_s()});
    found.push_back({"a larger expert degree gives each expert more rows",
                     {fmt::format("strategy.expert={}", strategy.expert * times)},
                     at_most_s});
  }
  const int inside = strategy.expert_tensor > 0 ? strategy.expert_tensor : strategy.tensor;
  if (inside > 1)
    found.push_back(
        {"experts that are not split make larger products",
         {fmt::format("strategy.expert={}", strategy.expert * inside), "strategy.expert_tensor=1"},
         at_most_s + now.waiting_s(Purpose::tensor)});
  if (strategy.expert == 1 || strategy.capacity_factor > 0) return;
  for (const ExpertDispatch dispatch : {ExpertDispatch::ranks, ExpertDispatch::nodes})
    if (dispatch != strategy.expert_dispatch)
      found.push_back({"a token's rows are sent once for several experts",
                       {fmt::format("strategy.expert_dispatch={}",
                                    kExpertDispatchNames[static_cast<std::size_t>(dispatch)])},
                       now.waiting_s(Purpose::experts)});
}

void change_placement(const Situation& now, Remedies& found) {
  const StrategyChoice& strategy = now.scenario.strategy;
  if (strategy.pipeline == 1 || strategy.data == 1) return;
  const bool pipeline_inside = !strategy.placement.empty() && strategy.placement.back() != "pipeline";
  const char* inner = strategy.context > 1 ? R"("tensor", "context")" : R"("tensor")";
  const double at_most_s = now.bubble_s() + now.waiting_s(Purpose::pipeline) +
                           now.waiting_s(Purpose::gradient_sync) + now.waiting_s(Purpose::weights);
  found.push_back({pipeline_inside ? "data-parallel ranks next to each other reduce gradients on faster links"
                                   : "stages next to each other send over faster links",
                   {fmt::format("strategy.placement=[{}, {}]", inner,
                                pipeline_inside ? R"("data", "pipeline")" : R"("pipeline", "data")")},
                   at_most_s});
}

}  // namespace rehearse
