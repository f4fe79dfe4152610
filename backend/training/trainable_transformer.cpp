#include "backend/training/trainable_transformer.hpp"

#include <fmt/format.h>

#include <cmath>

#include "backend/training/transformer_parameters.hpp"
#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {
namespace {

// Returns whether ranks exchange routed rows, because tokens and experts' rows are split differently.
bool exchanges_rows(const Factor& factor) {
  const Split &tokens = factor.table.of(SegmentKind::dispatch),
              &rows = factor.table.of(SegmentKind::expert_up);
  const bool apart = tokens.kind == Split::Kind::by && (rows.kind != tokens.kind || rows.dim != tokens.dim);
  return apart || (rows.kind == Split::Kind::by && rows.dim == Dim::experts);
}

std::string why_no_experts(const Scenario& scenario, const Transformer& t, const DimSizes& sizes) {
  if (scenario.strategy.expert_imbalance > 0)
    return "a real router spreads the rows over experts, without strategy.expert_imbalance";
  if (scenario.strategy.expert_dispatch != ExpertDispatch::experts)
    return "real ranks send a row to each expert, not once to ranks or nodes (strategy.expert_dispatch)";
  // Tolerates a ratio that is given as a truncated decimal.
  const double room = t.experts / t.experts_per_token, capacity = scenario.strategy.capacity_factor;
  if (capacity > 0 && (capacity > room || capacity < room * (1 - 1e-6)))
    return fmt::format(
        "strategy.capacity_factor is {}; allowed in real training: {}, with room for every token, or none",
        capacity, room);
  if (capacity > 0) return "";
  const long chosen = sizes.batch * sizes.sequence * std::lround(t.experts_per_token);
  if (chosen % sizes.experts != 0)
    return fmt::format("{} rows of a micro-batch for {} experts", chosen, sizes.experts);
  for (const Factor& factor : factors_of(scenario))
    if (exchanges_rows(factor))
      return fmt::format(
          "ranks of axis {} exchange rows of experts, and cannot know how many will arrive; allowed in real "
          "training: strategy.capacity_factor = {}, with room for every token",
          factor.axis, room);
  return "";
}

}  // namespace

bool has_dropout(const Transformer& t) {
  return t.dropout || t.embedding_dropout.value_or(t.dropout) || t.attention_dropout.value_or(t.dropout);
}

std::string why_no_transformer(const Scenario& scenario) {
  const auto& t = std::get<Transformer>(scenario.model.shape);
  struct Lacking {
    bool is;
    const char* what;
  };
  for (const Lacking& lacking : {
           Lacking{!t.causal || t.masked_lm_head || t.pooler, "a task other than next-token prediction"},
           {t.token_types > 0, "token types"},
           {t.classes > 0, "a classifier"},
           {t.patch_size > 0, "patches of images"},
           {t.relative_positions > 0, "relative positions"},
           {t.qk_norm && t.qk_norm_gains != QkNormGains::head, "QK norms with other gains than one a head"},
           {!t.norm_gains, "norms without gains"},
           {!t.pre_norms, "layers without norms before their parts"},
           {t.shared_norm, "one norm for attention and feed-forward"},
           {t.projection_bias.has_value() || t.head_bias, "biases in some of its products only"},
           {!t.no_rotary_layers.empty(), "layers without rotary positions"},
           {t.embedding_width > 0, "an embedding of another width"},
           {t.kv_lora_rank > 0, "multi-head latent attention"},
           {t.attention_sinks, "attention sinks"},
           {t.attention_softcap || t.logit_softcap, "soft-capping"},
           {t.shared_expert > 0 && t.shared_expert_gate, "a gated shared expert"},
           {t.experts > 0 && t.biases, "experts with biases"},
       })
    if (lacking.is) return fmt::format("{} has {}", scenario.model.title, lacking.what);
  const DimSizes sizes = dim_sizes(scenario);
  if (t.positions > 0 && t.positions < static_cast<double>(sizes.sequence))
    return fmt::format("{} has {} positions for sequences of {} tokens", scenario.model.title, t.positions,
                       sizes.sequence);
  if (t.rotary && std::lround(t.head_dim > 0 ? t.head_dim : t.hidden / t.heads) % 2 != 0)
    return fmt::format("{} has rotary embeddings on heads of an odd width", scenario.model.title);
  // Dropout is drawn by the index of a head, and context ranks take turns among a tensor rank's heads, so
  // that the indices would not match.
  const StrategyChoice& s = scenario.strategy;
  if (t.attention_dropout.value_or(t.dropout) && s.tensor > 1 && s.context > 1 &&
      s.context_kind == ContextKind::all_to_all)
    return "dropout of scores whose heads are split over tensor and context ranks (context_kind = "
           "\"all-to-all\")";
  if (std::string why = t.experts > 0 ? why_no_experts(scenario, t, sizes) : ""; !why.empty()) return why;
  return "";
}

}  // namespace rehearse
