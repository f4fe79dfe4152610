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
    images();
    const bool image = t_.patch_size > 0;
    t_.vocabulary = image ? whole("vocabulary", 0, 0, 0) : whole("vocabulary", 1, kMaxTokens);
    const double patches = t_.patches() + (t_.class_token ? 1 : 0);
    t_.sequence_length = image ? whole("sequence_length", static_cast<std::int64_t>(patches),
                                       static_cast<std::int64_t>(patches), patches)
                               : whole("sequence_length", 1, kMaxTokens);
    t_.context_limit = whole("context_limit", 0, kMaxTokens, 0);
    t_.rotary = s_.boolean("rotary", false);
    t_.positions = whole("positions", 0, kMaxTokens, t_.rotary ? 0 : t_.sequence_length);
    t_.position_offset = whole("position_offset", 0, kMaxWidth, 0);
    t_.token_types = whole("token_types", 0, kMaxWidth, 0);
    t_.embedding_width = whole("embedding_width", 0, kMaxWidth, 0);
    t_.narrow_positions = s_.boolean("narrow_positions", false);
    if (t_.narrow_positions && t_.embedding_width == 0)
      s_.refuse("narrow_positions", "true without embedding_width", "false, or an embedding_width");
    t_.causal = s_.boolean("causal", !image);
    t_.tied_embeddings = s_.boolean("tied_embeddings", !image);
    t_.final_norm = s_.boolean("final_norm", t_.causal || image);
    t_.embedding_norm = s_.boolean("embedding_norm", !t_.final_norm);
    t_.pooler = s_.boolean("pooler", false);
    t_.masked_lm_head = s_.boolean("masked_lm_head", !t_.causal && !image && !s_.has("classes"));
    if (image)
      for (const auto& [key, given] : {std::pair("causal", t_.causal),
                                       {"tied_embeddings", t_.tied_embeddings},
                                       {"masked_lm_head", t_.masked_lm_head}})
        if (given) s_.refuse(key, "true with patch_size", "false: patches of images are not words");
    t_.head_bias = s_.boolean("head_bias", false);
    t_.classes = whole("classes", 0, kMaxWidth, 0);
    t_.classes_of_tokens = s_.boolean("classes_of_tokens", false);
    if (t_.classes_of_tokens) s_.require("classes", "classes_of_tokens", "the number of outputs");
    t_.logit_softcap = s_.boolean("logit_softcap", false);
    t_.biases = s_.boolean("biases", true);
    t_.norm_gains = s_.boolean("norm_gains", true);
    if (!t_.norm_gains && s_.has("norm_biases") && s_.boolean("norm_biases", false))
      s_.refuse("norm_biases", "true with norm_gains = false", "false: such norms have no parameters");
    t_.norm_biases = unless("norm_biases", t_.biases);
    t_.projection_bias = unless("projection_bias", t_.biases);
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
    t_.qk_norm_gains = static_cast<QkNormGains>(s_.choice("qk_norm_gains", kQkNormGainsNames, 0));
    if (s_.has("qk_norm_gains") && !t_.qk_norm)
      s_.refuse("qk_norm_gains", "given without qk_norm", "only with qk_norm = true");
    only_with(s_, "no_rotary_layers", "rotary", t_.rotary);
    t_.no_rotary_layers = read_layers(s_, "no_rotary_layers", t_.layers);
    if (latent && !t_.no_rotary_layers.empty())
      s_.refuse("no_rotary_layers", "given with kv_lora_rank", "to leave it out");
    t_.relative_positions = whole("relative_positions", 0, kMaxTokens, 0);
    t_.relative_weights = s_.boolean("relative_weights", false);
    if (t_.relative_weights && t_.relative_positions == 0)
      s_.refuse("relative_weights", "true without relative_positions", "only with relative_positions");
    if (t_.relative_positions > 0 && (t_.causal || latent))
      s_.refuse("relative_positions", fmt::format("{}", t_.relative_positions),
                "0, or a model with causal = false and without kv_lora_rank");
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
    t_.shared_norm = s_.boolean("shared_norm", false);
    if (t_.shared_norm && !t_.parallel_residual)
      s_.refuse("shared_norm", "true without parallel_residual", "only with parallel_residual = true");
    t_.pre_norms = s_.boolean("pre_norms", true);
    if (!t_.pre_norms && !t_.post_norms)
      s_.refuse("pre_norms", "false without post_norms", "true, or post_norms = true");
    if (!t_.pre_norms && t_.shared_norm) s_.refuse("pre_norms", "false with shared_norm", "true");
  }

  void images() {
    t_.patch_size = whole("patch_size", 0, kMaxWidth, 0);
    const bool image = t_.patch_size > 0;
    for (const char* key : {"image_size", "image_channels", "class_token"})
      only_with(s_, key, "patch_size", image);
    t_.image_size = whole("image_size", image ? 1 : 0, kMaxImage, image ? std::nullopt : std::optional(0.0));
    if (image && (t_.image_size < t_.patch_size || std::fmod(t_.image_size, t_.patch_size) != 0))
      s_.refuse("patch_size", fmt::format("{}", t_.patch_size),
                fmt::format("a divisor of image_size, {}", t_.image_size));
    t_.image_channels = whole("image_channels", 1, kMaxWidth, 3);
    t_.class_token = s_.boolean("class_token", true);
  }

  // Reads all keys in any case, so that all are known to "did you mean".
  void experts() {
    const std::int64_t experts = s_.integer("experts", 1, kMaxExperts, 1);
    const bool mixture = s_.has("experts");
    for (const char* key : {"experts_per_token", "shared_expert"})
      if (!mixture && s_.has(key)) s_.refuse(key, "given without experts", "only with experts, their number");
    for (const char* key : {"expert_groups", "groups_per_token", "router_bias", "shared_expert_gate",
                            "dense_layers", "dense_feed_forward"})
      only_with(s_, key, "experts", mixture);
    if (mixture) s_.require("experts_per_token", "experts", fmt::format("an integer from 1 to {}", experts));
    const std::int64_t chosen = s_.integer("experts_per_token", 1, experts, 1),
                       shared = s_.integer("shared_expert", 0, kMaxInner, 0);
    expert_groups(experts, chosen);
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

  void expert_groups(std::int64_t experts, std::int64_t chosen) {
    const std::int64_t groups = s_.integer("expert_groups", 1, experts, 1);
    if (experts % groups != 0)
      s_.refuse("expert_groups", fmt::format("{}", groups), fmt::format("a divisor of experts, {}", experts));
    const std::int64_t most = s_.integer("groups_per_token", 1, groups, groups);
    if (most * (experts / groups) < chosen)
      s_.refuse("groups_per_token",
                fmt::format("{}, with {} experts altogether", most, most * (experts / groups)),
                fmt::format("enough groups for experts_per_token, {}", chosen));
    t_.expert_groups = static_cast<double>(groups);
    t_.groups_per_token = static_cast<double>(most);
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
    if (t.patch_size > 0) {
      for (const auto& [key, number] : {std::pair<const char*, double>("patch_size", t.patch_size),
                                        {"image_size", t.image_size},
                                        {"image_channels", t.image_channels}})
        put(key, static_cast<std::int64_t>(number));
      put("class_token", t.class_token);
    }
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
                                      {"classes", t.classes},
                                      {"relative_positions", t.relative_positions},
                                      {"window", t.window}})
      if (number > 0) put(key, static_cast<std::int64_t>(number));
    for (const auto& [key, is] : {std::pair<const char*, bool>("qk_norm", t.qk_norm),
                                  {"attention_sinks", t.attention_sinks},
                                  {"attention_softcap", t.attention_softcap},
                                  {"logit_softcap", t.logit_softcap},
                                  {"relu", t.relu},
                                  {"parallel_residual", t.parallel_residual},
                                  {"shared_norm", t.shared_norm},
                                  {"post_norms", t.post_norms},
                                  {"head_bias", t.head_bias},
                                  {"classes_of_tokens", t.classes_of_tokens},
                                  {"narrow_positions", t.narrow_positions},
                                  {"relative_weights", t.relative_weights}})
      if (is) put(key, is);
    for (const auto& [key, is] :
         {std::pair<const char*, bool>("pre_norms", t.pre_norms), {"norm_gains", t.norm_gains}})
      if (!is) put(key, is);
    if (t.qk_norm && t.qk_norm_gains != QkNormGains::head)
      put("qk_norm_gains", std::string(kQkNormGainsNames[static_cast<std::size_t>(t.qk_norm_gains)]));
    for (const auto& [key, is] : {std::pair("norm_biases", t.norm_biases),
                                  {"projection_bias", t.projection_bias},
                                  {"embedding_dropout", t.embedding_dropout},
                                  {"attention_dropout", t.attention_dropout}})
      if (is) put(key, *is);
    put("full_attention_layers", t.full_attention_layers);
    put("no_rotary_layers", t.no_rotary_layers);
    if (t.experts > 0) {
      put("experts", static_cast<std::int64_t>(t.experts));
      put("experts_per_token", static_cast<std::int64_t>(t.experts_per_token));
      if (t.groups_per_token < t.expert_groups) {
        put("expert_groups", static_cast<std::int64_t>(t.expert_groups));
        put("groups_per_token", static_cast<std::int64_t>(t.groups_per_token));
      }
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
