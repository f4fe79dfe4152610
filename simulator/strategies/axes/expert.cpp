// Expert parallelism: the ranks of the tensor, context and data axes also form a second mesh, over which the
// experts of each layer are distributed (Lepikhin et al., "GShard", 2020; Liu et al., "MoE Parallel Folding",
// 2025). Tokens are sent to the ranks that hold their experts, and the results are sent back.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/text/document.hpp"
#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {
namespace {

using enum SegmentKind;

const Transformer* mixture(const Scenario& scenario) {
  const auto* t = std::get_if<Transformer>(&scenario.model.shape);
  return t && t->experts > 0 ? t : nullptr;
}

int expert_tensor(const StrategyChoice& choice) {
  return choice.expert_tensor > 0 ? choice.expert_tensor : choice.tensor;
}

// Ranks of a stage are numbered with the innermost axis first. The first `expert_tensor` ranks share one
// group of experts; the first `expert_tensor` x `expert` ranks together hold every expert once.
struct Cuts {
  int tensor = 1, end = 1;
};
Cuts cuts_of(const StrategyChoice& choice) {
  return {expert_tensor(choice), expert_tensor(choice) * choice.expert};
}

// Returns how many ranks are between neighbours on an axis of the mesh, not counting those of other stages.
int ranks_inside(const StrategyChoice& choice, std::string_view name) {
  int inside = 1;
  for (const Axis& axis : worker_axes(choice)) {
    if (axis.name == name) break;
    if (axis.name != "pipeline") inside *= axis.size;
  }
  return inside;
}

AxisTable with_experts(const Factor& factor, int begin, const Cuts& cuts) {
  AxisTable table = factor.table;
  const Split rows = table.of(norm);
  // Without sequence parallelism, tensor ranks hold the same tokens, so each dispatches a share of them.
  const bool same_tokens = rows.kind == Split::Kind::duplicate;
  if (begin < cuts.tensor) {
    if (!same_tokens) table.rows({expert_up, expert_down}, by(Dim::inner));
    return table;
  }
  if (same_tokens) table.rows({dispatch, combine}, by(Dim::sequence));
  if (begin < cuts.end) return table.rows({expert_up, expert_down}, by(Dim::experts));
  return table.rows({expert_up, expert_down}, same_tokens ? by(Dim::sequence) : rows);
}

void overlay(const Scenario& scenario, std::vector<Factor>& factors) {
  if (!places_experts(scenario)) return;
  const StrategyChoice& choice = scenario.strategy;
  const Cuts cuts = cuts_of(choice);
  std::vector<Factor> parts;
  for (const Factor& factor : factors) {
    const int inside = ranks_inside(choice, factor.axis);
    int end = inside * factor.stride * factor.size;
    const int begin = inside * factor.stride;
    for (int cut : {cuts.end, cuts.tensor, begin}) {  // the outermost first
      cut = std::clamp(cut, begin, end);
      if (cut == end) continue;
      Factor part = factor;
      part.size = end / cut;
      part.stride = cut / inside;
      part.table = with_experts(factor, cut, cuts);
      // Ranks with their own batch that share nothing with others do not split the work.
      const Split& rows = factor.table.of(norm);
      const bool alone = cut >= cuts.end && rows.kind == Split::Kind::by && rows.dim == Dim::batch;
      if (!alone) parts.push_back(part);
      end = cut;
    }
  }
  factors = std::move(parts);
}

void fit_expert(Section& strategy, const Scenario& scenario) {
  const StrategyChoice& choice = scenario.strategy;
  const Transformer* t = mixture(scenario);
  for (const char* key :
       {"expert", "expert_tensor", "capacity_factor", "expert_imbalance", "expert_dispatch"})
    if (!t && strategy.has(key) && !(std::string_view(key) == "expert" && choice.expert == 1))
      strategy.refuse_inapplicable(key, fmt::format("given with {}", scenario.model.name),
                                   "a model with a mixture of experts, or no such key");
  if (!t) return;
  if (choice.expert_imbalance > 0 && choice.capacity_factor > 0)
    strategy.refuse_inapplicable("expert_imbalance",
                                 fmt::format("{} with capacity_factor", choice.expert_imbalance),
                                 "one of the two: an expert's capacity is padded to the same rows for all");
  if (choice.expert_imbalance > 0 && choice.expert == 1)
    strategy.refuse_inapplicable("expert_imbalance",
                                 fmt::format("{} with expert = 1", choice.expert_imbalance),
                                 "only with an expert degree of 2 or more");
  if (choice.expert_dispatch != ExpertDispatch::experts) {
    const std::string name =
        fmt::format("\"{}\"", kExpertDispatchNames[static_cast<std::size_t>(choice.expert_dispatch)]);
    if (choice.capacity_factor > 0)
      strategy.refuse_inapplicable(
          "expert_dispatch", name + " with capacity_factor",
          "\"experts\", or no capacity_factor: rows that pad an expert are sent to it");
    if (choice.expert == 1)
      strategy.refuse_inapplicable("expert_dispatch", name + " with expert = 1",
                                   "only with an expert degree of 2 or more");
  }
  const std::string found = fmt::format("{}", choice.expert);
  if (std::fmod(t->experts, choice.expert) != 0)
    strategy.refuse("expert", found,
                    fmt::format("a divisor of {}, the experts of {}", t->experts, scenario.model.name));
  const double width = t->feed_forward > 0 ? t->feed_forward : 4 * t->hidden;
  if (std::fmod(width, expert_tensor(choice)) != 0)
    strategy.refuse("expert_tensor", fmt::format("{}", expert_tensor(choice)),
                    fmt::format("a divisor of {}, the inner width of an expert", width));
  if (!places_experts(scenario)) return;
  if (choice.gradients != "all-reduce")
    strategy.refuse("expert", fmt::format("{} with gradients = \"{}\"", found, choice.gradients),
                    "1, or gradients = \"all-reduce\"");
  // The cuts of both meshes must divide one another.
  const Cuts cuts = cuts_of(choice);
  std::vector<std::pair<int, std::string>> ends;
  int end = 1;
  for (const Axis& axis : worker_axes(choice)) {
    if (axis.name == "pipeline") continue;
    // An axis can itself consist of factors: ranks that share key-value heads, and those that share queries.
    for (const Factor& factor : find_axis(axis.name)->factors(scenario))
      ends.emplace_back(end * factor.stride * factor.size, axis.name);
    end *= axis.size;
    ends.emplace_back(end, axis.name);
  }
  const auto check = [&](const char* key, int cut, const std::string& what, const char* allowed) {
    if (!strategy.has(key)) key = "expert";
    if (end % cut != 0)
      strategy.refuse(key, what, fmt::format("{} divides {}, the ranks of a stage", allowed, end));
    for (const auto& [size, name] : ends)
      if (size % cut != 0 && cut % size != 0)
        strategy.refuse(key, what,
                        fmt::format("{} divides {}, the ranks up to the {} axis, or is a multiple of it",
                                    allowed, size, name));
  };
  check("expert_tensor", cuts.tensor, fmt::format("{}", cuts.tensor), "a degree that");
  check("expert", cuts.end,
        cuts.tensor > 1 ? fmt::format("{} with an expert tensor degree of {}", found, cuts.tensor) : found,
        cuts.tensor > 1 ? "a degree whose product with that" : "a degree that");
  if (choice.expert_imbalance > 0 && expert_mesh(choice).empty())
    strategy.refuse(
        "expert_imbalance",
        fmt::format("{} with stages between the ranks of an expert group", choice.expert_imbalance),
        "a placement with \"pipeline\" last, or no such key");
  const double tokens = tokens_per_sample(scenario.model, scenario.training.sequence_length);
  if (!choice.sequence_parallel && choice.tensor > cuts.tensor &&
      std::fmod(tokens / choice.context, choice.tensor / cuts.tensor) != 0)
    strategy.refuse(
        "expert", found,
        fmt::format("1: {} tokens cannot be shared out by tensor ranks", tokens / choice.context));
}

Advice less_expert_communication(const Scenario& scenario, const LinkPlace& busiest) {
  const StrategyChoice& choice = scenario.strategy;
  const int in_node = scenario.cluster->node().devices, cut = cuts_of(choice).end;
  if (!crosses_network(busiest) || cut <= in_node || cut % in_node != 0 ||
      choice.expert % (cut / in_node) != 0)
    return {};
  return {"inside a node it would not cross the network",
          {fmt::format("strategy.expert={}", choice.expert / (cut / in_node))}};
}

Advice less_expert_waiting(const Scenario& scenario) {
  if (scenario.strategy.expert_imbalance == 0) return {};
  return {"a capacity would bound the rows of the fullest expert",
          {"strategy.capacity_factor=1.25", "strategy.expert_imbalance=0"}};
}

}  // namespace

bool places_experts(const Scenario& scenario) {
  const StrategyChoice& choice = scenario.strategy;
  return mixture(scenario) && (choice.expert > 1 || expert_tensor(choice) != choice.tensor);
}

std::vector<Axis> expert_mesh(const StrategyChoice& choice) {
  const Cuts cuts = cuts_of(choice);
  const auto first_axes = [&](int ranks) {
    return std::vector<Axis>{
        {"expert_tensor", cuts.tensor}, {"expert", choice.expert}, {"expert_data", ranks / cuts.end}};
  };
  std::vector<Axis> mesh;
  int neighbours = 1;
  for (const Axis& axis : worker_axes(choice)) {
    if (mesh.empty() && axis.name != "pipeline") {
      neighbours *= axis.size;
      continue;
    }
    if (mesh.empty()) mesh = first_axes(neighbours);
    mesh.push_back(axis);
  }
  if (neighbours % cuts.end != 0) return {};
  return mesh.empty() ? first_axes(neighbours) : mesh;
}

int ranks_with_experts_apart(const Scenario& scenario, std::string_view axis) {
  if (!places_experts(scenario)) return 1;
  const int size = find_axis(axis)->degree(scenario.strategy);
  return std::clamp(cuts_of(scenario.strategy).end / ranks_inside(scenario.strategy, axis), 1, size);
}

extern const AxisEntry kExpertAxis{
    "expert",
    "ranks of the other axes that split a mixture's experts",
    Purpose::experts,
    false,
    false,
    [](const StrategyChoice& choice) { return choice.expert; },
    [](Section& strategy, StrategyChoice& choice) {
      choice.expert = static_cast<int>(strategy.integer("expert", 1, kMaxDegree, 1));
      choice.expert_tensor = static_cast<int>(strategy.integer("expert_tensor", 1, kMaxDegree, 1));
      if (!strategy.has("expert_tensor")) choice.expert_tensor = 0;
      choice.capacity_factor = strategy.number("capacity_factor", {0.1, 100}, 1);
      if (!strategy.has("capacity_factor")) choice.capacity_factor = 0;
      choice.expert_imbalance = strategy.number("expert_imbalance", {0, 10}, 0);
      choice.expert_dispatch =
          static_cast<ExpertDispatch>(strategy.choice("expert_dispatch", kExpertDispatchNames, 0));
    },
    fit_expert,
    [](const Scenario&) { return std::vector<Factor>(); },
    [](const StrategyChoice& choice) {
      return choice.expert_tensor > 1
                 ? fmt::format("expert {} (tensor {})", choice.expert, choice.expert_tensor)
                 : fmt::format("expert {}", choice.expert);
    },
    less_expert_communication,
    less_expert_waiting,
    overlay,
};

}  // namespace rehearse
