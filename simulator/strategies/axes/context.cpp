// Context parallelism: each rank takes a share of every sequence. Only attention needs the tokens of other
// ranks. Keys and values are passed around a ring (Liu et al., "Ring Attention with Blockwise Transformers
// for Near-Infinite Context", 2023) or gathered (Llama team, "The Llama 3 Herd of Models", 2024, section
// 3.3.2); or queries, keys and values are exchanged so that each rank has complete sequences of some heads
// (Jacobs et al., "DeepSpeed Ulysses", 2023).
#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "models/text/document.hpp"
#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {
namespace {

using enum SegmentKind;

// Factors the degree for all-to-all attention: ranks first split the key-value heads of a tensor rank. If
// there are more ranks than heads, the remaining factor splits the query heads of each key-value head.
struct HeadShares {
  int heads = 1, queries = 1;
};

HeadShares head_shares(const Transformer& t, const StrategyChoice& strategy) {
  const int kv = static_cast<int>(t.kv_heads > 0 ? t.kv_heads : t.heads);
  const int heads = std::gcd(strategy.context, kv / std::gcd(strategy.tensor, kv));
  return {heads, strategy.context / heads};
}

std::vector<Factor> context_factors(const Scenario& scenario) {
  const StrategyChoice& strategy = scenario.strategy;
  AxisTable table(by(Dim::sequence));
  table.rows({block}, {});
  const auto factor = [&](int size, int stride, const AxisTable& its) {
    Factor made{"context", size, stride, its};
    made.sums_gradients = true;
    return made;
  };
  if (strategy.context_kind == ContextKind::all_to_all) {
    const auto* t = std::get_if<Transformer>(&scenario.model.shape);
    const HeadShares shares = t ? head_shares(*t, strategy) : HeadShares{};
    AxisTable heads = table, queries = table;
    heads.rows({attention}, by(Dim::kv_heads));
    queries.rows({attention}, by(Dim::queries));
    return {factor(shares.heads, shares.queries, heads), factor(shares.queries, 1, queries)};
  }
  Factor whole = factor(strategy.context, 1, table);
  whole.keeps_shards = true;
  whole.ring = strategy.context_kind == ContextKind::ring;
  return {whole};
}

void fit_context(Section& strategy, const Scenario& scenario) {
  const StrategyChoice& choice = scenario.strategy;
  const int degree = choice.context;
  if (degree == 1) return;
  const std::string found = fmt::format("{}", degree);
  const auto* t = std::get_if<Transformer>(&scenario.model.shape);
  if (!t)
    strategy.refuse("context", fmt::format("{} with {}", found, scenario.model.name),
                    "1, or a transformer, whose sequences can be split");
  const double tokens = tokens_per_sample(scenario.model, scenario.training.sequence_length);
  const bool two_pieces = choice.context_kind == ContextKind::ring && choice.zigzag && t->causal;
  const int pieces = degree * (two_pieces ? 2 : 1) * (choice.sequence_parallel ? choice.tensor : 1);
  if (std::fmod(tokens, pieces) != 0) {
    const double below = std::floor(tokens / pieces) * pieces;
    strategy.refuse(
        "context", fmt::format("{} with sequences of {} tokens", found, tokens),
        fmt::format("a degree that cuts them evenly, or sequences of a multiple of {} tokens (context{}{}), "
                    "such as {}{}",
                    pieces, two_pieces ? " x 2 for zigzag" : "",
                    choice.sequence_parallel ? " x tensor for sequence_parallel" : "",
                    below > 0 ? fmt::format("{:.0f} or ", below) : "", below + pieces));
  }
  if (choice.context_kind != ContextKind::all_to_all) return;
  if (std::fmod(t->heads, static_cast<double>(degree) * choice.tensor) != 0)
    strategy.refuse(
        "context",
        fmt::format("{} with context_kind = \"all-to-all\"{}", found,
                    choice.tensor > 1 ? fmt::format(" and tensor = {}", choice.tensor) : ""),
        fmt::format("a divisor of {}, the heads of {}{}, or another context_kind", t->heads / choice.tensor,
                    scenario.model.name, choice.tensor > 1 ? " on a tensor rank" : ""));
}

Advice less_communication(const Scenario& scenario, const LinkPlace&) {
  const StrategyChoice& strategy = scenario.strategy;
  if (strategy.context % 2 != 0 || scenario.microbatches % 2 != 0) return {};
  return {"half the degree and twice the data parallel ranks send less, and store more activations",
          {fmt::format("strategy.context={}", strategy.context / 2),
           fmt::format("strategy.data={}", strategy.data * 2)}};
}

Advice less_waiting(const Scenario& scenario) {
  const StrategyChoice& strategy = scenario.strategy;
  if (strategy.context == 1 || strategy.context_kind != ContextKind::ring || strategy.zigzag) return {};
  return {"shares from both ends of a sequence would take the same time on all ranks",
          {"strategy.zigzag=true"}};
}

}  // namespace

extern const AxisEntry kContextAxis{
    "context",
    "ranks that split each sequence",
    Purpose::context,
    false,
    true,
    [](const StrategyChoice& choice) { return choice.context; },
    [](Section& strategy, StrategyChoice& choice) {
      choice.context = static_cast<int>(strategy.integer("context", 1, kMaxDegree, 1));
      choice.context_kind = static_cast<ContextKind>(strategy.choice("context_kind", kContextKindNames, 0));
      choice.zigzag = strategy.boolean("zigzag", true);
    },
    fit_context,
    context_factors,
    [](const StrategyChoice& choice) {
      return fmt::format("context {} ({})", choice.context,
                         kContextKindNames[static_cast<std::size_t>(choice.context_kind)]);
    },
    less_communication,
    less_waiting,
};

}  // namespace rehearse
