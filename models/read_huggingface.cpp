// Defines the families of models whose config.json can be read. Keys that the library fills in get its
// defaults. Keys that determine the size of the model are required, except where published configs omit them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "models/huggingface_config.hpp"
#include "models/kernels.hpp"
#include "models/transformer_limits.hpp"

namespace rehearse {
namespace {

using Config = HuggingFaceConfig;
using Notes = std::vector<std::string>;

// The longest sequence assumed if a config gives only the limit of the context: Llama 3 is pre-trained on
// 8,192 tokens (Grattafiori et al. 2024, arXiv 2407.21783, section 3.4.1) and reaches its 131,072 in a short
// final stage.
constexpr double kUsualSequence = 8192;

constexpr std::array<std::string_view, 3> kBertClasses = {"BertModel", "BertForMaskedLM",
                                                          "BertForPreTraining"};
constexpr std::array<std::string_view, 2> kLayerTypes = {"full_attention", "sliding_attention"};
// The names of the number of experts in configs of mixtures of experts.
constexpr std::array<std::string_view, 4> kExpertKeys = {"num_local_experts", "num_experts",
                                                         "n_routed_experts", "moe_num_experts"};

struct Family {
  std::string_view name;  // the config's model_type
  Transformer (*read)(const Config&, const Family&, Notes&);
  bool experts = false;          // its models are mixtures of experts
  std::string_view inside = {};  // key of the nested config of the text model
  // Differences between the families that read_llama() reads; the defaults are the library's.
  enum class Biases { none, qkv, linear } biases = Biases::none;
  bool qk_norm = false;
  bool post_norms = false;
  bool tied = false;    // default of tie_word_embeddings
  double head_dim = 0;  // 0: hidden_size / num_attention_heads
  double kv_heads = 0;  // 0: num_attention_heads
  // Sliding windows: switched: if use_sliding_window, in all layers from max_window_layers on; alternating:
  // in all layers except every second or sixth; in_all: in all layers. `layer_types` takes precedence over
  // these.
  enum class Windows { none, switched, alternating, in_all } windows = Windows::none;
  double window = 0;   // default of sliding_window
  int full_every = 0;  // for alternating
  // Sizes that published configs omit; 0: required.
  double vocabulary = 0, heads = 0, context = 0;
};

void set_context(Transformer& t, double limit) {
  t.sequence_length = std::min(limit, kUsualSequence);
  t.context_limit = limit > kUsualSequence ? limit : 0;
}

bool is_relu(const Config& c, std::string_view key, const std::string& fallback) {
  return c.text(key, fallback) == "relu";
}

void set_dropout(Transformer& t, double embedding, double attention, double residual) {
  t.dropout = residual > 0;
  if ((embedding > 0) != t.dropout) t.embedding_dropout = embedding > 0;
  if ((attention > 0) != t.dropout) t.attention_dropout = attention > 0;
}

Transformer read_gpt2(const Config& c, const Family&, Notes&) {
  Transformer t;
  t.hidden = c.whole("n_embd", kMaxWidth);
  t.layers = static_cast<int>(c.whole("n_layer", kMaxLayers));
  t.heads = c.whole("n_head", kMaxHeads);
  c.divides("n_head", t.heads, "n_embd", t.hidden);
  t.feed_forward = c.whole("n_inner", kMaxInner, 4 * t.hidden);
  t.vocabulary = c.whole("vocab_size", kMaxTokens);
  t.positions = c.whole("n_positions", kMaxTokens);
  set_context(t, t.positions);
  t.tied_embeddings = c.boolean("tie_word_embeddings", true);
  set_dropout(t, c.probability("embd_pdrop", 0.1), c.probability("attn_pdrop", 0.1),
              c.probability("resid_pdrop", 0.1));
  t.relu = is_relu(c, "activation_function", "gelu_new");
  c.only("add_cross_attention", false);
  return t;
}

std::optional<double> unless_required(double number) {
  return number > 0 ? std::optional(number) : std::nullopt;
}

// Reads hidden_size and similar keys, which newer families share.
Transformer read_common(const Config& c, const Family& family, std::string_view inner = "intermediate_size") {
  Transformer t;
  t.hidden = c.whole("hidden_size", kMaxWidth);
  t.layers = static_cast<int>(c.whole("num_hidden_layers", kMaxLayers));
  t.heads = c.whole("num_attention_heads", kMaxHeads, unless_required(family.heads));
  t.feed_forward = c.whole(inner, kMaxInner);
  t.vocabulary = c.whole("vocab_size", kMaxTokens, unless_required(family.vocabulary));
  set_context(t, c.whole("max_position_embeddings", kMaxTokens, unless_required(family.context)));
  return t;
}

void even_heads(const Config& c, const Transformer& t) {
  c.divides("num_attention_heads", t.heads, "hidden_size", t.hidden);
}

void read_windows(const Config& c, const Family& family, Transformer& t) {
  using Windows = Family::Windows;
  if (family.windows == Windows::none) return c.only("use_sliding_window", false);
  if (family.windows == Windows::switched && !c.boolean("use_sliding_window", false)) return;
  t.window = c.whole_or_none("sliding_window", kMaxTokens, family.window);
  if (t.window == 0) return;
  const std::vector<std::size_t> types =
      c.choices("layer_types", static_cast<std::size_t>(t.layers), kLayerTypes);
  int every = 0, first = 0;  // layers with full attention: each `every`th, and those before `first`
  if (family.windows == Windows::switched)
    first = static_cast<int>(c.whole("max_window_layers", kMaxLayers, 28, 0));
  if (family.windows == Windows::alternating)
    every = static_cast<int>(c.whole("sliding_window_pattern", kMaxLayers, family.full_every));
  for (int i = 0; i < t.layers; ++i) {
    const bool full = types.empty() ? i < first || (every > 0 && (i + 1) % every == 0)
                                    : types[static_cast<std::size_t>(i)] == 0;
    if (full) t.full_attention_layers.push_back(i);
  }
  if (t.full_attention_layers.size() < static_cast<std::size_t>(t.layers)) return;
  t.window = 0;
  t.full_attention_layers.clear();
}

Transformer read_llama(const Config& c, const Family& family, Notes&) {
  Transformer t = read_common(c, family);
  t.kv_heads = c.has("num_key_value_heads") || family.kv_heads == 0
                   ? c.whole("num_key_value_heads", kMaxHeads, t.heads)
                   : family.kv_heads;
  c.divides("num_key_value_heads", t.kv_heads, "num_attention_heads", t.heads);
  t.head_dim = c.whole("head_dim", kMaxWidth, family.head_dim);
  if (t.head_dim == 0) even_heads(c, t);
  if (t.head_dim * t.heads == t.hidden) t.head_dim = 0;
  const bool biases = family.biases != Family::Biases::none;
  c.only("attention_bias", biases);
  c.only("mlp_bias", false);
  t.gated = t.rotary = true;
  t.biases = family.biases == Family::Biases::linear;
  if (t.biases) t.norm_biases = false;
  t.qkv_biases = biases;
  t.qk_norm = family.qk_norm;
  t.post_norms = family.post_norms;
  t.tied_embeddings = c.boolean("tie_word_embeddings", family.tied);
  set_dropout(t, c.probability("embd_pdrop", 0), c.probability("attention_dropout", 0),
              c.probability("resid_pdrop", 0));
  read_windows(c, family, t);
  return t;
}

bool has_softcap(const Config& c, std::string_view key, bool fallback) {
  if (!c.has(key)) return fallback;
  const auto* value = c.find(key);
  if (value && (!value->is_number() || value->get<double>() <= 0))
    c.refuse(key, describe(*value), "a number above 0, or null");
  return value != nullptr;
}

Transformer read_gemma2(const Config& c, const Family& family, Notes& notes) {
  Transformer t = read_llama(c, family, notes);
  t.attention_softcap = has_softcap(c, "attn_logit_softcapping", true);
  t.logit_softcap = has_softcap(c, "final_logit_softcapping", true);
  return t;
}

Transformer read_gemma3(const Config& c, const Family& family, Notes& notes) {
  Transformer t = read_llama(c, family, notes);
  t.attention_softcap = has_softcap(c, "attn_logit_softcapping", false);
  t.logit_softcap = has_softcap(c, "final_logit_softcapping", false);
  return t;
}

Transformer read_bert(const Config& c, const Family& family, Notes&) {
  Transformer t = read_common(c, family);
  even_heads(c, t);
  t.positions = c.whole("max_position_embeddings", kMaxTokens);
  t.token_types = c.whole("type_vocab_size", kMaxWidth);
  t.causal = t.final_norm = false;
  t.embedding_norm = true;
  t.tied_embeddings = c.boolean("tie_word_embeddings", true);
  const double hidden = c.probability("hidden_dropout_prob", 0.1);
  set_dropout(t, hidden, c.probability("attention_probs_dropout_prob", 0.1), hidden);
  t.relu = is_relu(c, "hidden_act", "gelu");
  c.only("is_decoder", false);
  c.only("add_cross_attention", false);
  if (const auto* kind = c.find("position_embedding_type")) {
    constexpr std::array<std::string_view, 1> kAbsolute = {"absolute"};
    c.choice("position_embedding_type", kind, kAbsolute);
  }
  // The heads that the encoder is trained with.
  const auto* classes = c.find("architectures");
  if (classes && (!classes->is_array() || classes->size() != 1)) {
    c.refuse("architectures", describe(*classes), "an array of one class");
  }
  const std::size_t index = c.choice("architectures", classes ? &classes->front() : nullptr, kBertClasses);
  t.pooler = index != 1;
  t.masked_lm_head = index != 0;
  return t;
}

// Learned positions, of which the first two rows are for padding; no dropout after the embedding.
Transformer read_opt(const Config& c, const Family& family, Notes&) {
  Transformer t = read_common(c, family, "ffn_dim");
  even_heads(c, t);
  t.positions = c.whole("max_position_embeddings", kMaxTokens);
  t.position_offset = 2;
  t.embedding_width = c.whole("word_embed_proj_dim", kMaxWidth, t.hidden);
  if (t.embedding_width == t.hidden) t.embedding_width = 0;
  t.tied_embeddings = c.boolean("tie_word_embeddings", true);
  t.biases = t.qkv_biases = c.boolean("enable_bias", true);
  if (!t.biases) t.norm_biases = true;
  c.only("layer_norm_elementwise_affine", true);
  c.only("_remove_final_layer_norm", false);
  t.final_norm = c.boolean("do_layer_norm_before", true);
  set_dropout(t, 0, c.probability("attention_dropout", 0), c.probability("dropout", 0.1));
  t.relu = is_relu(c, "activation_function", "relu");
  return t;
}

Transformer read_gpt_neox(const Config& c, const Family& family, Notes&) {
  Transformer t = read_common(c, family);
  even_heads(c, t);
  c.only("attention_bias", true);
  t.rotary = true;
  t.parallel_residual = c.boolean("use_parallel_residual", true);
  t.tied_embeddings = c.boolean("tie_word_embeddings", false);
  const double hidden = c.probability("hidden_dropout", 0);
  set_dropout(t, hidden, c.probability("attention_dropout", 0), hidden);
  t.relu = is_relu(c, "hidden_act", "gelu");
  return t;
}

// `dense`: the layers without experts. If that is all layers, the model is not a mixture.
void set_experts(Transformer& t, double experts, double chosen, double width, std::vector<int> dense) {
  if (dense.size() == static_cast<std::size_t>(t.layers)) return;
  t.experts = experts;
  t.experts_per_token = chosen;
  t.dense_feed_forward = dense.empty() ? 0 : t.feed_forward;
  t.feed_forward = width;
  t.dense_layers = std::move(dense);
}

double chosen_experts(const Config& c, double experts, std::string_view key,
                      std::optional<double> fallback = std::nullopt) {
  return c.whole(key, static_cast<std::int64_t>(experts), fallback);
}

Transformer read_mixtral(const Config& c, const Family& family, Notes& notes) {
  Transformer t = read_llama(c, family, notes);
  const double experts = c.whole("num_local_experts", kMaxExperts, 8);
  set_experts(t, experts, chosen_experts(c, experts, "num_experts_per_tok", 2), t.feed_forward, {});
  return t;
}

Transformer read_gpt_oss(const Config& c, const Family& family, Notes& notes) {
  Transformer t = read_llama(c, family, notes);
  const double experts = c.whole("num_local_experts", kMaxExperts);
  const char* chosen = c.find("num_experts_per_tok") ? "num_experts_per_tok" : "experts_per_token";
  set_experts(t, experts, chosen_experts(c, experts, chosen), t.feed_forward, {});
  t.router_bias = t.attention_sinks = true;
  return t;
}

// Experts have a separate width; intermediate_size is that of the layers without experts.
Transformer read_qwen_moe(const Config& c, const Family& family, Notes& notes) {
  Transformer t = read_llama(c, family, notes);
  const int step = static_cast<int>(c.whole("decoder_sparse_step", kMaxLayers, 1));
  const std::vector<int> plain = c.layers("mlp_only_layers", t.layers);
  std::vector<int> dense;
  for (int i = 0; i < t.layers; ++i)
    if ((i + 1) % step != 0 || std::binary_search(plain.begin(), plain.end(), i)) dense.push_back(i);
  const double experts = c.whole("num_experts", kMaxExperts);
  set_experts(t, experts, chosen_experts(c, experts, "num_experts_per_tok"),
              c.whole("moe_intermediate_size", kMaxInner), std::move(dense));
  return t;
}

Transformer read_qwen2_moe(const Config& c, const Family& family, Notes& notes) {
  Transformer t = read_qwen_moe(c, family, notes);
  const double shared = c.whole("shared_expert_intermediate_size", kMaxInner);
  if (t.experts > 0) t.shared_expert = shared;
  return t;
}

// DeepSeek V3's bias for balancing the load of the experts is set by a rule and not trained by a gradient. As
// in the library, it is not a parameter.
Transformer read_deepseek(const Config& c, const Family& family, Notes& notes) {
  Transformer t = read_common(c, family);
  const double plain = c.whole("qk_nope_head_dim", kMaxWidth / 2, 128);
  t.rope_head_dim = c.whole("qk_rope_head_dim", kMaxWidth / 2, 64);
  t.head_dim = plain + t.rope_head_dim;
  t.value_head_dim = c.whole("v_head_dim", kMaxWidth, 128);
  t.kv_lora_rank = c.whole("kv_lora_rank", kMaxWidth);
  t.q_lora_rank = c.whole_or_none("q_lora_rank", kMaxWidth, 1536);
  t.kv_heads = t.heads;
  c.only("attention_bias", false);
  c.only("mlp_bias", false);
  t.gated = t.rotary = true;
  t.biases = t.qkv_biases = false;
  t.tied_embeddings = c.boolean("tie_word_embeddings", false);
  set_dropout(t, 0, c.probability("attention_dropout", 0), 0);

  const double first = c.whole("first_k_dense_replace", kMaxLayers, std::nullopt, 0);
  const int step = static_cast<int>(c.whole("moe_layer_freq", kMaxLayers, 1));
  std::vector<int> dense;
  for (int i = 0; i < t.layers; ++i)
    if (i < first || i % step != 0) dense.push_back(i);
  const double experts = c.whole("n_routed_experts", kMaxExperts),
               width = c.whole("moe_intermediate_size", kMaxInner);
  const auto most = std::max<std::int64_t>(1, kMaxInner / static_cast<std::int64_t>(width));
  const double shared = c.whole("n_shared_experts", most, 0, 0);
  set_experts(t, experts, chosen_experts(c, experts, "num_experts_per_tok"), width, std::move(dense));
  if (t.experts > 0 && shared > 0) {
    t.shared_expert = shared * width;  // together they are equivalent to one wide expert
    t.shared_expert_gate = false;
  }
  if (c.whole("num_nextn_predict_layers", kMaxLayers, 0, 0) > 0)
    notes.push_back(
        "The module for multi-token prediction (num_nextn_predict_layers) is left out of the model.");
  return t;
}

using Biases = Family::Biases;
using Windows = Family::Windows;
constexpr Family kGemma3 = {.name = "gemma3_text",
                            .read = read_gemma3,
                            .qk_norm = true,
                            .post_norms = true,
                            .tied = true,
                            .head_dim = 256,
                            .kv_heads = 4,
                            .windows = Windows::alternating,
                            .window = 4096,
                            .full_every = 6,
                            .vocabulary = 262'208,
                            .heads = 8,
                            .context = 131'072};
constexpr Family within(Family family, std::string_view name, std::string_view key) {
  family.name = name;
  family.inside = key;
  return family;
}

constexpr std::array kFamilies = {
    Family{.name = "bert", .read = read_bert},
    Family{.name = "deepseek_v2", .read = read_deepseek, .experts = true},
    Family{.name = "deepseek_v3", .read = read_deepseek, .experts = true},
    Family{.name = "gemma2",
           .read = read_gemma2,
           .post_norms = true,
           .tied = true,
           .head_dim = 256,
           .kv_heads = 4,
           .windows = Windows::alternating,
           .window = 4096,
           .full_every = 2},
    within(kGemma3, "gemma3", "text_config"),
    kGemma3,
    Family{.name = "gpt2", .read = read_gpt2},
    Family{.name = "gpt_neox", .read = read_gpt_neox},
    Family{.name = "gpt_oss",
           .read = read_gpt_oss,
           .experts = true,
           .biases = Biases::linear,
           .head_dim = 64,
           .kv_heads = 8,
           .windows = Windows::alternating,
           .window = 128,
           .full_every = 2},
    Family{.name = "llama", .read = read_llama},
    Family{.name = "mistral", .read = read_llama, .kv_heads = 8, .windows = Windows::in_all, .window = 4096},
    Family{
        .name = "mixtral", .read = read_mixtral, .experts = true, .kv_heads = 8, .windows = Windows::in_all},
    Family{.name = "opt", .read = read_opt},
    Family{.name = "phi3", .read = read_llama, .windows = Windows::in_all},
    Family{.name = "qwen2",
           .read = read_llama,
           .biases = Biases::qkv,
           .windows = Windows::switched,
           .window = 4096},
    Family{.name = "qwen2_moe",
           .read = read_qwen2_moe,
           .experts = true,
           .biases = Biases::qkv,
           .windows = Windows::switched,
           .window = 4096},
    Family{.name = "qwen3",
           .read = read_llama,
           .qk_norm = true,
           .head_dim = 128,
           .windows = Windows::switched,
           .window = 4096},
    Family{.name = "qwen3_moe", .read = read_qwen_moe, .experts = true, .qk_norm = true},
};

void refuse_experts(const Config& c, const Family& family) {
  std::vector<std::string_view> mixtures;
  for (const Family& one : kFamilies)
    if (one.experts) mixtures.push_back(one.name);
  for (const std::string_view key : kExpertKeys)
    if (const auto* found = c.find(key))
      c.refuse(key, fmt::format("{} in a model of type \"{}\"", describe(*found), family.name),
               fmt::format("experts in models of type \"{}\"", fmt::join(mixtures, "\", \"")));
}

}  // namespace

Model read_huggingface(const std::string& path) {
  return parse_huggingface(read_text_file(path, "config.json"), path);
}

Model parse_huggingface(const std::string& text, const std::string& path) {
  const Config file(path, text);
  std::array<std::string_view, kFamilies.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kFamilies[i].name;
  const Family& family = kFamilies[file.choice("model_type", file.find("model_type"), names)];
  Model model;
  const bool nested = !family.inside.empty();
  if (nested)
    model.notes.push_back(
        fmt::format("Only the text model ({}) of this multi-modal model is simulated.", family.inside));
  const Config c = nested ? file.object(family.inside) : file;
  if (!family.experts) refuse_experts(c, family);
  model.shape = family.read(c, family, model.notes);
  return model;
}

}  // namespace rehearse
