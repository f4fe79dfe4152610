// Reads and writes the keys of [model.transformer].
#include <fmt/format.h>

#include <cmath>

#include "models/kernels.hpp"
#include "models/text/toml_table.hpp"
#include "models/transformer_limits.hpp"

namespace rehearse {
namespace {

// Reads layer numbers, counted from 0, in ascending order.
std::vector<int> read_layers(Section& s, std::string_view key, int layers) {
  std::vector<int> found;
  for (const std::int64_t layer : s.integers(key, 0, layers - 1)) {
    if (!found.empty() && layer <= found.back())
      s.refuse(key, fmt::format("an array with {} after {}", layer, found.back()),
               "layers in ascending order, each once");
    found.push_back(static_cast<int>(layer));
  }
  return found;
}

void only_with(Section& s, std::string_view key, std::string_view other, bool there) {
  if (!there && s.has(key))
    s.refuse(key, fmt::format("given without {}", other), fmt::format("only with {}", other));
}

class Reader {
public:
  explicit Reader(Section section) : s_(std::move(section)) {}

  Transformer read() {
    sizes();
    attention();
    feed_forward();
    experts();
    s_.finish();
    return t_;
  }

private:
  double whole(std::string_view key, std::int64_t min, std::int64_t max,
               std::optional<double> fallback = std::nullopt) {
    const auto otherwise = fallback ? std::optional(static_cast<std::int64_t>(*fallback)) : std::nullopt;
    return static_cast<double>(s_.integer(key, min, max, otherwise));
  }

  void sizes() {
    t_.layers = static_cast<int>(s_.integer("layers", 1, kMaxLayers));
    t_.hidden = whole("hidden", 1, kMaxWidth);
    t_.heads = whole("heads", 1, kMaxHeads);
    t_.head_dim = whole("head_dim", 0, kMaxWidth, 0);
    if (t_.head_dim == 0 && std::fmod(t_.hidden, t_.heads) != 0)
      s_.refuse("heads", fmt::format("{}", t_.heads), fmt::format("a divisor of hidden, {}", t_.hidden));
    t_.kv_heads = whole("kv_heads", 1, kMaxHeads, t_.heads);
    if (std::fmod(t_.heads, t_.kv_heads) != 0)
      s_.refuse("kv_heads", fmt::format("{}", t_.kv_heads), fmt::format("a divisor of heads, {}", t_.heads));
    t_.feed_forward = whole("feed_forward", 1, kMaxInner, 4 * t_.hidden);
    t_.vocabulary = whole("vocabulary", 1, kMaxTokens);
    t_.sequence_length = whole("sequence_length", 1, kMaxTokens);
    t_.context_limit = whole("context_limit", 0, kMaxTokens, 0);
    t_.rotary = s_.boolean("rotary", false);
    t_.positions = whole("positions", 0, kMaxTokens, t_.rotary ? 0 : t_.sequence_length);
    t_.position_offset = whole("position_offset", 0, kMaxWidth, 0);
    t_.token_types = whole("token_types", 0, kMaxWidth, 0);
    t_.embedding_width = whole("embedding_width", 0, kMaxWidth, 0);
    t_.causal = s_.boolean("causal", true);
    t_.tied_embeddings = s_.boolean("tied_embeddings", true);
    t_.final_norm = s_.boolean("final_norm", t_.causal);
    t_.embedding_norm = s_.boolean("embedding_norm", !t_.final_norm);
    t_.pooler = s_.boolean("pooler", false);
    t_.masked_lm_head = s_.boolean("masked_lm_head", !t_.causal);
    t_.logit_softcap = s_.boolean("logit_softcap", false);
    t_.biases = s_.boolean("biases", true);
    t_.norm_biases = unless("norm_biases", t_.biases);
    t_.dropout = s_.boolean("dropout", true);
    t_.embedding_dropout = unless("embedding_dropout", t_.dropout);
    t_.attention_dropout = unless("attention_dropout", t_.dropout);
  }

  void attention() {
    t_.kv_lora_rank = whole("kv_lora_rank", 0, kMaxWidth, 0);
    const bool latent = t_.kv_lora_rank > 0;
    for (const char* key : {"q_lora_rank", "rope_head_dim"}) only_with(s_, key, "kv_lora_rank", latent);
    t_.q_lora_rank = whole("q_lora_rank", 0, kMaxWidth, 0);
    const double head = t_.head_dim > 0 ? t_.head_dim : t_.hidden / t_.heads;
    t_.rope_head_dim = whole("rope_head_dim", latent ? 1 : 0, static_cast<std::int64_t>(head),
                             latent ? std::nullopt : std::optional(0.0));
    t_.value_head_dim = whole("value_head_dim", 0, kMaxWidth, 0);
    t_.qkv_biases = s_.boolean("qkv_biases", t_.biases && !latent);
    t_.qk_norm = s_.boolean("qk_norm", false);
    if (latent) {
      if (t_.kv_heads != t_.heads)
        s_.refuse("kv_heads", fmt::format("{} with kv_lora_rank", t_.kv_heads),
                  fmt::format("as many as heads, {}", t_.heads));
      for (const auto& [key, given] : {std::pair("qkv_biases", t_.qkv_biases), {"qk_norm", t_.qk_norm}})
        if (given) s_.refuse(key, "true with kv_lora_rank", "false");
    }
    t_.attention_sinks = s_.boolean("attention_sinks", false);
    t_.attention_softcap = s_.boolean("attention_softcap", false);
    t_.window = whole("window", 0, kMaxTokens, 0);
    only_with(s_, "full_attention_layers", "window", t_.window > 0);
    t_.full_attention_layers = read_layers(s_, "full_attention_layers", t_.layers);
  }

  void feed_forward() {
    t_.gated = s_.boolean("gated", false);
    t_.relu = s_.boolean("relu", false);
    if (t_.relu && t_.gated) s_.refuse("relu", "true with gated", "false");
    t_.parallel_residual = s_.boolean("parallel_residual", false);
    t_.post_norms = s_.boolean("post_norms", false);
  }

  // Reads all keys in any case, so that all are known to "did you mean".
  void experts() {
    const std::int64_t experts = s_.integer("experts", 1, kMaxExperts, 1);
    const bool mixture = s_.has("experts");
    for (const char* key : {"experts_per_token", "shared_expert"})
      if (!mixture && s_.has(key)) s_.refuse(key, "given without experts", "only with experts, their number");
    for (const char* key : {"router_bias", "shared_expert_gate", "dense_layers", "dense_feed_forward"})
      only_with(s_, key, "experts", mixture);
    if (mixture) s_.require("experts_per_token", "experts", fmt::format("an integer from 1 to {}", experts));
    const std::int64_t chosen = s_.integer("experts_per_token", 1, experts, 1),
                       shared = s_.integer("shared_expert", 0, kMaxInner, 0);
    t_.router_bias = s_.boolean("router_bias", false);
    t_.shared_expert_gate = s_.boolean("shared_expert_gate", true);
    t_.dense_layers = read_layers(s_, "dense_layers", t_.layers);
    t_.dense_feed_forward = whole("dense_feed_forward", t_.dense_layers.empty() ? 0 : 1, kMaxInner,
                                  t_.dense_layers.empty() ? std::optional(0.0) : std::nullopt);
    if (!mixture) return;
    t_.experts = static_cast<double>(experts);
    t_.experts_per_token = static_cast<double>(chosen);
    t_.shared_expert = static_cast<double>(shared);
  }

  // Returns a value only if it differs from `usual`.
  std::optional<bool> unless(std::string_view key, bool usual) {
    const bool found = s_.boolean(key, usual);
    return found == usual ? std::nullopt : std::optional(found);
  }

  Section s_;
  Transformer t_;
};

class Writer {
public:
  explicit Writer(const Place& place) : table_(toml_table(place)), place_(place) {}

  TomlValue write(const Transformer& t) {
    const double inner = t.feed_forward > 0 ? t.feed_forward : 4 * t.hidden;
    for (const auto& [key, number] : {std::pair<const char*, double>("layers", t.layers),
                                      {"hidden", t.hidden},
                                      {"heads", t.heads},
                                      {"feed_forward", inner},
                                      {"vocabulary", t.vocabulary},
                                      {"sequence_length", t.sequence_length}})
      put(key, static_cast<std::int64_t>(number));
    if (t.kv_heads > 0 && t.kv_heads != t.heads) put("kv_heads", static_cast<std::int64_t>(t.kv_heads));
    put("rotary", t.rotary);
    put("positions", static_cast<std::int64_t>(t.positions));
    put("token_types", static_cast<std::int64_t>(t.token_types));
    for (const auto& [key, is] : {std::pair<const char*, bool>("causal", t.causal),
                                  {"tied_embeddings", t.tied_embeddings},
                                  {"final_norm", t.final_norm},
                                  {"embedding_norm", t.embedding_norm},
                                  {"gated", t.gated},
                                  {"biases", t.biases},
                                  {"qkv_biases", t.qkv_biases},
                                  {"dropout", t.dropout},
                                  {"pooler", t.pooler},
                                  {"masked_lm_head", t.masked_lm_head}})
      put(key, is);
    // Writes the others only if they differ from the reader's defaults.
    for (const auto& [key, number] : {std::pair<const char*, double>("context_limit", t.context_limit),
                                      {"position_offset", t.position_offset},
                                      {"embedding_width", t.embedding_width},
                                      {"head_dim", t.head_dim},
                                      {"value_head_dim", t.value_head_dim},
                                      {"kv_lora_rank", t.kv_lora_rank},
                                      {"q_lora_rank", t.q_lora_rank},
                                      {"rope_head_dim", t.rope_head_dim},
                                      {"window", t.window}})
      if (number > 0) put(key, static_cast<std::int64_t>(number));
    for (const auto& [key, is] : {std::pair<const char*, bool>("qk_norm", t.qk_norm),
                                  {"attention_sinks", t.attention_sinks},
                                  {"attention_softcap", t.attention_softcap},
                                  {"logit_softcap", t.logit_softcap},
                                  {"relu", t.relu},
                                  {"parallel_residual", t.parallel_residual},
                                  {"post_norms", t.post_norms}})
      if (is) put(key, is);
    for (const auto& [key, is] : {std::pair("norm_biases", t.norm_biases),
                                  {"embedding_dropout", t.embedding_dropout},
                                  {"attention_dropout", t.attention_dropout}})
      if (is) put(key, *is);
    put("full_attention_layers", t.full_attention_layers);
    if (t.experts > 0) {
      put("experts", static_cast<std::int64_t>(t.experts));
      put("experts_per_token", static_cast<std::int64_t>(t.experts_per_token));
      put("shared_expert", static_cast<std::int64_t>(t.shared_expert));
      if (t.router_bias) put("router_bias", true);
      if (!t.shared_expert_gate) put("shared_expert_gate", false);
      put("dense_layers", t.dense_layers);
      if (t.dense_feed_forward > 0)
        put("dense_feed_forward", static_cast<std::int64_t>(t.dense_feed_forward));
    }
    return std::move(table_);
  }

private:
  template <typename T>
  void put(const char* key, T held) {
    TomlEntry& entry = table_.get<TomlValue::Table>()->emplace_back();
    entry.key = key;
    entry.place = entry.value.place = place_;
    entry.value.data = held;
  }

  void put(const char* key, const std::vector<int>& layers) {
    if (layers.empty()) return;
    TomlValue::Array array;
    for (const int layer : layers) {
      TomlValue& element = array.emplace_back();
      element.data = std::int64_t{layer};
      element.place = place_;
    }
    put(key, std::move(array));
  }

  TomlValue table_;
  Place place_;
};

}  // namespace

Transformer read_transformer(Section section) {
  return Reader(std::move(section)).read();
}

TomlValue transformer_table(const Transformer& shape, const Place& place) {
  return Writer(place).write(shape);
}

}  // namespace rehearse
