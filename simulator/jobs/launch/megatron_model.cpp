// Sources of the arguments: megatron_launch.cpp.
#include "simulator/jobs/launch/megatron_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulator/jobs/launch/launch_parts.hpp"

namespace rehearse {
namespace {

constexpr double kVocabularyMultiple = 128;  // --make-vocab-size-divisible-by, its default

// Returns "([1]*3+[0]*2)", for example: runs that say for each layer whether it is one of `listed`.
std::string pattern(int layers, const std::vector<int>& listed, int value_if_listed) {
  std::string text;
  for (int i = 0; i < layers;) {
    const auto value = [&](int layer) {
      const bool found = std::binary_search(listed.begin(), listed.end(), layer);
      return found ? value_if_listed : 1 - value_if_listed;
    };
    int end = i;
    while (end < layers && value(end) == value(i)) ++end;
    text += fmt::format("{}[{}]*{}", text.empty() ? "" : "+", value(i), end - i);
    i = end;
  }
  return fmt::format("\"({})\"", text);
}

class ModelArguments {
public:
  ModelArguments(const Scenario& scenario, std::vector<std::string>& cannot)
      : s_(scenario), t_(std::get<Transformer>(scenario.model.shape)), cannot_(cannot) {}

  std::vector<std::string> write() {
    sizes();
    attention();
    positions();
    forms();
    if (t_.experts > 0) experts();
    return std::move(lines_);
  }

private:
  void add(std::string line) { lines_.push_back(std::move(line)); }
  void add(std::string_view name, double number) { add(fmt::format("--{} {:.0f}", name, number)); }

  double inner() const { return t_.feed_forward > 0 ? t_.feed_forward : 4 * t_.hidden; }

  void sizes() {
    add("num-layers", t_.layers);
    add("hidden-size", t_.hidden);
    add("num-attention-heads", t_.heads);
    add("ffn-hidden-size", t_.dense_feed_forward > 0 ? t_.dense_feed_forward : inner());
    const double multiple = kVocabularyMultiple * s_.strategy.tensor;
    const double padded = std::ceil(t_.vocabulary / multiple) * multiple;
    if (padded != t_.vocabulary)
      cannot_.push_back(fmt::format(
          "Megatron-LM pads the vocabulary of {} to {}, a multiple of {} ({} for each tensor rank).",
          t_.vocabulary, padded, multiple, kVocabularyMultiple));
    if (!t_.tied_embeddings) add("--untie-embeddings-and-output-weights");
  }

  void attention() {
    if (t_.kv_lora_rank > 0) {
      const double head = t_.head_dim > 0 ? t_.head_dim : t_.hidden / t_.heads;
      add("--multi-latent-attention");
      if (t_.q_lora_rank > 0) add("q-lora-rank", t_.q_lora_rank);
      add("kv-lora-rank", t_.kv_lora_rank);
      add("qk-head-dim", head - t_.rope_head_dim);
      add("qk-pos-emb-head-dim", t_.rope_head_dim);
      add("v-head-dim", t_.value_head_dim > 0 ? t_.value_head_dim : head);
      add("--qk-layernorm");  // of the compressed vectors
    } else {
      if (t_.kv_heads > 0 && t_.kv_heads != t_.heads) {
        add("--group-query-attention");
        add("num-query-groups", t_.kv_heads);
      }
      if (t_.head_dim > 0) add("kv-channels", t_.head_dim);
      if (t_.qk_norm) add("--qk-layernorm");
    }
    if (t_.attention_sinks) add("--softmax-type learnable");
    if (!t_.no_rotary_layers.empty()) add("--no-rope-freq " + pattern(t_.layers, t_.no_rotary_layers, 1));
    if (t_.window > 0) {
      add(fmt::format("--window-size {:.0f},0", t_.window - 1));  // keys before and after a query
      if (!t_.full_attention_layers.empty())
        add("--window-attn-skip-freq " + pattern(t_.layers, t_.full_attention_layers, 0));
    }
  }

  void positions() {
    add("max-position-embeddings",
        t_.positions > 0 ? t_.positions : std::max(sequence_tokens(s_), t_.context_limit));
    add(fmt::format("--position-embedding-type {}", t_.rotary          ? "rope"
                                                    : t_.positions > 0 ? "learned_absolute"
                                                                       : "none"));
    if (!t_.rotary && t_.positions == 0)
      cannot_.emplace_back(
          "Megatron-LM has no ALiBi: a model whose positions are neither learned nor rotary is written "
          "without any.");
  }

  void forms() {
    const bool norm_biases = t_.norm_biases.value_or(t_.biases);
    add(fmt::format("--normalization {}", norm_biases ? "LayerNorm" : "RMSNorm"));
    if (t_.gated) add("--swiglu");
    if (!t_.biases) {
      add("--disable-bias-linear");
      if (t_.qkv_biases) add("--add-qkv-bias");
    }
    add(fmt::format("--attention-dropout {}", t_.attention_dropout.value_or(t_.dropout) ? "0.1" : "0"));
    add(fmt::format("--hidden-dropout {}", t_.dropout ? "0.1" : "0"));
    if (t_.embedding_dropout && *t_.embedding_dropout != t_.dropout)
      cannot_.emplace_back("Megatron-LM has no dropout of the embedding apart from that of layers.");
    if (t_.relu) cannot_.emplace_back("Megatron-LM has no ReLU: GELU is written (or add --squared-relu).");
  }

  void experts() {
    add("num-experts", t_.experts);
    add("moe-router-topk", t_.experts_per_token);
    if (t_.groups_per_token < t_.expert_groups) {
      add("moe-router-num-groups", t_.expert_groups);
      add("moe-router-group-topk", t_.groups_per_token);
    }
    add("moe-ffn-hidden-size", inner());
    add("--moe-grouped-gemm");
    if (t_.biases) add("--no-bias-dropout-fusion");  // grouped products with biases do not support it
    if (!t_.dense_layers.empty()) add("--moe-layer-freq " + pattern(t_.layers, t_.dense_layers, 0));
    if (t_.shared_expert > 0) {
      add("moe-shared-expert-intermediate-size", t_.shared_expert);
      if (t_.shared_expert_gate) add("--moe-shared-expert-gate");
    }
    if (t_.router_bias != t_.biases)
      cannot_.push_back(
          fmt::format("Megatron-LM's router has {} bias, as its other products do.", t_.biases ? "a" : "no"));
  }

  const Scenario& s_;
  const Transformer& t_;
  std::vector<std::string>& cannot_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> not_a_megatron_model(const Transformer& t) {
  const std::pair<bool, const char*> without[] = {
      {t.parallel_residual, "attention and feed-forward that read the same input (parallel_residual)"},
      {t.post_norms, "norms after attention and feed-forward (post_norms)"},
      {t.shared_norm, "attention and feed-forward behind one norm (shared_norm)"},
      {!t.pre_norms, "layers without norms before their parts (pre_norms = false)"},
      {!t.norm_gains, "norms without parameters (norm_gains = false)"},
      {t.qk_norm && t.qk_norm_gains != QkNormGains::head,
       "QK norms but those with one gain for all heads (qk_norm_gains)"},
      {t.projection_bias.has_value(),
       "bias of attention's last product apart from the others (projection_bias)"},
      {t.head_bias, "bias of the logits (head_bias)"},
      {t.classes > 0, "classifiers (classes)"},
      {t.patch_size > 0, "patches of images (patch_size)"},
      {t.relative_positions > 0, "relative positions (relative_positions)"},
      {t.attention_softcap, "soft caps of attention scores (attention_softcap)"},
      {t.logit_softcap, "soft caps of logits (logit_softcap)"},
      {t.embedding_width > 0, "projections of the embedding (embedding_width)"},
      {t.embedding_norm, "norm after the embedding (embedding_norm)"},
      {!t.final_norm, "models without a last norm (final_norm = false)"},
      {t.biases && !t.qkv_biases && t.kv_lora_rank == 0,
       "biases in linear layers but not of queries, keys and values (qkv_biases = false)"},
      {t.biases && t.shared_expert > 0, "shared experts with biases (biases = true with shared_expert)"},
  };
  std::vector<std::string> reasons;
  for (const auto& [has, what] : without)
    if (has) reasons.push_back(fmt::format("pretrain_gpt.py of Megatron-LM has no {}.", what));
  return reasons;
}

std::vector<std::string> megatron_model(const Scenario& scenario, std::vector<std::string>& cannot) {
  return ModelArguments(scenario, cannot).write();
}

}  // namespace rehearse
