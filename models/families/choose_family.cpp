// Chooses the family that a config.json is read as.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "models/families/read_family.hpp"
#include "models/text/toml_value.hpp"

namespace rehearse::families {
namespace {

using Config = HuggingFaceConfig;

// Keys that say nothing about the shape of layers, or that all families may have.
constexpr std::array kCommonKeys = {"model_type",
                                    "architectures",
                                    "auto_map",
                                    "torch_dtype",
                                    "dtype",
                                    "transformers_version",
                                    "_name_or_path",
                                    "_attn_implementation",
                                    "attn_implementation",
                                    "bos_token_id",
                                    "eos_token_id",
                                    "pad_token_id",
                                    "sep_token_id",
                                    "cls_token_id",
                                    "mask_token_id",
                                    "unk_token_id",
                                    "decoder_start_token_id",
                                    "tokenizer_class",
                                    "initializer_range",
                                    "initializer_factor",
                                    "init_std",
                                    "rms_norm_eps",
                                    "layer_norm_eps",
                                    "layer_norm_epsilon",
                                    "norm_eps",
                                    "norm_epsilon",
                                    "layernorm_epsilon",
                                    "rope_theta",
                                    "rope_scaling",
                                    "rope_parameters",
                                    "rope_base",
                                    "rope_local_base_freq",
                                    "rope_pct",
                                    "rope_interleave",
                                    "rotary_base",
                                    "rotary_emb_base",
                                    "rotary_pct",
                                    "rotary_dim",
                                    "rotary_percent",
                                    "partial_rotary_factor",
                                    "rotary",
                                    "use_cache",
                                    "pretraining_tp",
                                    "output_attentions",
                                    "output_hidden_states",
                                    "output_router_logits",
                                    "return_dict",
                                    "router_aux_loss_coef",
                                    "aux_loss_alpha",
                                    "aux_loss_free",
                                    "seq_aux",
                                    "router_jitter_noise",
                                    "router_z_loss_coef",
                                    "norm_topk_prob",
                                    "routed_scaling_factor",
                                    "scoring_func",
                                    "score_function",
                                    "topk_method",
                                    "topk_group",
                                    "n_group",
                                    "num_limited_groups",
                                    "ep_size",
                                    "quantization_config",
                                    "task_specific_params",
                                    "tie_word_embeddings",
                                    "hidden_act",
                                    "gradient_checkpointing",
                                    "use_flash_attn",
                                    "use_flash_attention",
                                    "use_flash_attention_2",
                                    "id2label",
                                    "label2id",
                                    "problem_type",
                                    "finetuning_task",
                                    "attention_dropout",
                                    "hidden_dropout",
                                    "resid_pdrop",
                                    "embd_pdrop",
                                    "classifier_dropout",
                                    "residual_dropout",
                                    "embedding_multiplier",
                                    "residual_multiplier",
                                    "attention_multiplier",
                                    "logits_scaling",
                                    "logit_scale",
                                    "scale_emb",
                                    "scale_depth",
                                    "dim_model_base",
                                    "query_pre_attn_scalar",
                                    "max_window_layers",
                                    "vocab_size",
                                    "head_dim",
                                    "_commit_hash",
                                    "language",
                                    "unsloth_version",
                                    "unsloth_fixed",
                                    "keys_to_ignore_at_inference",
                                    "chunk_size_feed_forward",
                                    "is_decoder",
                                    "use_bidirectional_attention",
                                    "original_max_position_embeddings",
                                    "max_length",
                                    "temperature",
                                    "top_p",
                                    "top_k",
                                    "do_sample",
                                    "repetition_penalty",
                                    "clip_qkv",
                                    "seq_len",
                                    "mlp_bias",
                                    "attention_bias"};

std::vector<const Family*> all_families() {
  std::vector<const Family*> all;
  for (const auto families : {decoder_families(), mixture_families(), encoder_families()})
    for (const Family& family : families) all.push_back(&family);
  return all;
}

const Family* find_family(std::string_view type) {
  for (const Family* family : all_families())
    if (family->type == type) return family;
  return nullptr;
}

const Composite* find_composite(std::string_view type) {
  for (const Composite& composite : composite_families())
    if (composite.type == type) return &composite;
  return nullptr;
}

void add_names(std::set<std::string, std::less<>>& names, Keys keys) {
  while (!keys.empty()) {
    const std::size_t bar = keys.find('|');
    std::string_view one = keys.substr(0, bar);
    if (one.starts_with('!')) one.remove_prefix(1);
    names.emplace(one.substr(0, one.find('.')));
    keys = bar == Keys::npos ? Keys() : keys.substr(bar + 1);
  }
}

// The outermost keys that a family reads.
std::set<std::string, std::less<>> keys_of(const Family& f) {
  std::set<std::string, std::less<>> names;
  const SizeKeys& k = f.keys;
  for (const Keys keys :
       {k.hidden, k.layers, k.heads, k.kv_heads, k.head_dim, k.inner, k.vocabulary, k.context, f.activation,
        f.window.width, f.window.every, f.window.first, f.no_rotary.every_keys, f.no_rotary.list,
        f.experts.dense, f.experts.each, f.experts.sparse})
    add_names(names, keys);
  for (const Switch& one :
       {f.grouped, f.multi_query, f.alibi, f.tied, f.biases, f.qkv_biases, f.projection_bias, f.head_bias,
        f.norm_biases, f.norm_gains, f.final_norm, f.embedding_norm, f.qk_norm, f.parallel, f.shared_norm,
        f.window.used, f.relative, f.relative_weights})
    add_names(names, one.keys);
  const Experts& e = f.experts;
  for (const Number& one : {f.inner_ratio,
                            f.token_types,
                            f.embedding_width,
                            f.parallel_norms,
                            f.score_cap,
                            f.logit_cap,
                            f.embedding_dropout,
                            f.attention_dropout,
                            f.dropout,
                            e.count,
                            e.width,
                            e.dense_width,
                            e.shared_count,
                            e.shared_width,
                            e.first,
                            e.last,
                            e.step,
                            f.image_size,
                            f.patch_size,
                            f.image_channels,
                            f.predicted_ahead})
    add_names(names, one.keys);
  if (!e.count.keys.empty()) add_names(names, e.chosen.keys);
  if (f.latent.keys_rank.otherwise > 0)
    for (const Number& one :
         {f.latent.keys_rank, f.latent.queries_rank, f.latent.plain, f.latent.rotary, f.latent.value})
      add_names(names, one.keys);
  if (!f.window.width.empty()) add_names(names, "layer_types|attention_layers|attention_types");
  if (f.relative.keys != Keys())
    add_names(names, "max_relative_positions|position_buckets|pos_att_type|norm_rel_ebd");
  for (const std::string_view only : f.only) names.emplace(only.substr(0, only.find('=')));
  return names;
}

bool has_sizes(const Config& c, const Family& f) {
  return c.find(f.keys.hidden) && c.find(f.keys.layers) && (c.find(f.keys.heads) || f.sizes.heads == 0) &&
         (c.find(f.keys.vocabulary) || f.patch_size.otherwise > 0);
}

// Returns the first few names, each shortened: a file may have any number of keys of any length.
std::string first_names(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 6, kLongest = 60;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i)
    shown.push_back(names[i].size() <= kLongest ? names[i] : in_quotes(names[i]));
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : "");
}

struct Match {
  const Family* family = nullptr;
  std::vector<std::string> foreign;  // keys that the family does not read
  std::size_t unused = 0;            // weighs keys of the family's shape that the config does not have
};

// Returns the family whose keys the config has, with the fewest others.
Match nearest_by_keys(const Config& c, const std::string& type) {
  const std::vector<std::string> keys = c.keys();
  const bool rms = c.has("rms_norm_eps"), offsets = c.has("layer_norm_eps|layer_norm_epsilon") && !rms;
  Match best;
  for (const Family* family : all_families()) {
    if (!has_sizes(c, *family)) continue;
    const auto names = keys_of(*family);
    Match match{family, {}, 0};
    for (const std::string& key : keys)
      if (!names.contains(key) && std::find(kCommonKeys.begin(), kCommonKeys.end(), key) == kCommonKeys.end())
        match.foreign.push_back(key);
    if (rms && family->norm_biases.otherwise) match.foreign.emplace_back("rms_norm_eps");
    if (offsets && !family->norm_biases.otherwise) match.foreign.emplace_back("layer_norm_eps");
    for (const Keys shaping :
         {family->experts.count.keys, family->experts.width.keys, family->latent.keys_rank.keys,
          family->inner_ratio.keys, family->embedding_width.keys, family->token_types.keys,
          family->patch_size.keys, family->window.width})
      if (!shaping.empty() && !c.has(shaping)) match.unused += 2;
    const bool namesake = !type.empty() && type.starts_with(family->type);
    if (!namesake) ++match.unused;
    if (!best.family ||
        std::pair(match.foreign.size(), match.unused) < std::pair(best.foreign.size(), best.unused))
      best = std::move(match);
  }
  return best;
}

// "DeepseekV3ForCausalLM" and "deepseek_v3" become "deepseekv3".
std::string plain(std::string_view name) {
  std::string made;
  for (const char letter : name)
    if (letter != '_' && letter != '-')
      made += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  return made;
}

const Family* family_of_class(const Config& c, std::string& found) {
  const auto* classes = c.find("architectures");
  if (!classes || !classes->is_array() || classes->empty() || !classes->front().is_string()) return nullptr;
  found = classes->front().get<std::string>();
  for (const std::string_view end : {"LMHeadModel", "Model", "For"}) {
    const std::size_t at = found.rfind(end);
    if (at == std::string::npos) continue;
    const std::string name = plain(std::string_view(found).substr(0, at));
    for (const Family* family : all_families())
      if (plain(family->type) == name) return family;
  }
  return nullptr;
}

const MissingFamily* find_missing(std::string_view type) {
  for (const MissingFamily& missing : missing_families())
    if (missing.type == type) return &missing;
  return nullptr;
}

[[noreturn]] void refuse_missing_layers(const Config& c, const MissingFamily& missing) {
  c.refuse("model_type",
           fmt::format("{}, whose {} are not modelled", in_quotes(missing.type), missing.layers),
           "models of attention, feed-forwards and mixtures of experts, and encoders of these");
}

// Reads a nested text model, whatever the outer type is.
constexpr std::array<std::string_view, 4> kNested = {"text_config", "llm_config", "language_config",
                                                     "thinker_config"};

Choice choose_known(const Config& c, const std::string& type, bool forced) {
  if (const Composite* composite = find_composite(type)) {
    Choice choice;
    choice.composite = composite;
    choice.family = find_family(composite->text);
    const auto* inner = c.find(composite->inside);
    if (inner || !composite->flat) {
      const Config nested = c.object(composite->inside);
      choice.inside = composite->inside;
      const std::string own = nested.text("model_type", std::string(composite->text));
      if (const MissingFamily* missing = find_missing(own)) refuse_missing_layers(nested, *missing);
      if (const Family* family = find_family(own)) choice.family = family;
    }
    return choice;
  }
  if (const Family* family = find_family(type)) return {family, nullptr, "", ""};
  if (const MissingFamily* missing = find_missing(type); missing && !forced)
    refuse_missing_layers(c, *missing);
  return {};
}

}  // namespace

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family* family : all_families()) names.emplace_back(family->type);
  for (const Composite& composite : composite_families()) names.emplace_back(composite.type);
  std::sort(names.begin(), names.end());
  return names;
}

Choice choose_family(const HuggingFaceConfig& c, const std::string& forced) {
  const std::string type = c.text("model_type", "");
  if (!forced.empty()) {
    const Choice choice = choose_known(c, forced, true);
    if (choice.family) return choice;
    const std::vector<std::string> names = family_names();
    const std::string near = nearest_name(forced, names);
    throw InputError(
        {c.path(), 0, 0},
        fmt::format("model.family is {}; allowed: {}{}", in_quotes(forced), fmt::join(names, ", "),
                    near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
  }
  if (Choice choice = choose_known(c, type, false); choice.family) return choice;
  const std::string unknown =
      type.empty() ? "The file has no model_type" : fmt::format("The type {} is not known", in_quotes(type));
  for (const std::string_view key : kNested) {
    const auto* inner = c.find(key);
    if (!inner || !inner->is_object()) continue;
    Choice choice = choose_family(c.object(key), "");
    if (choice.composite) continue;
    choice.inside = choice.inside.empty() ? std::string(key) : fmt::format("{}.{}", key, choice.inside);
    choice.note = fmt::format("{}: its {} is read, as a model of type \"{}\". {}", unknown, key,
                              choice.family->type, choice.note);
    while (choice.note.ends_with(' ')) choice.note.pop_back();
    return choice;
  }
  std::string name;
  if (const Family* family = family_of_class(c, name); family && has_sizes(c, *family))
    return {family, nullptr, "",
            fmt::format("{}: by its class {} it is read as \"{}\".", unknown, name, family->type)};
  const Match match = nearest_by_keys(c, type);
  if (match.family && match.foreign.empty())
    return {match.family, nullptr, "",
            fmt::format("{}: it is read as \"{}\", whose keys it has. model.family chooses another.", unknown,
                        match.family->type)};
  const std::string found = type.empty() ? "missing" : in_quotes(type);
  const std::string near =
      match.family ? std::string(match.family->type) : nearest_name(type, family_names());
  const std::string others =
      match.foreign.empty() ? "" : fmt::format(", which reads no {}", first_names(match.foreign));
  c.refuse(
      "model_type", found,
      fmt::format("a known type{}; model.family forces one; [model.transformer] describes any transformer",
                  near.empty() ? "" : fmt::format(" (the nearest is \"{}\"{})", near, others)));
}

}  // namespace rehearse::families
