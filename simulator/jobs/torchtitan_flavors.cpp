// Sizes of flavors: github.com/pytorch/torchtitan, tag v0.2.2, torchtitan/models/NAME/__init__.py and
// model/args.py, which has the defaults.
#include "simulator/jobs/torchtitan_flavors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace rehearse {
namespace {

struct Flavor {
  TorchtitanFamily family;
  const char* name;
  double layers, hidden, heads, kv_heads, inner, vocabulary;
  double experts = 0, chosen = 0;
};
using enum TorchtitanFamily;
constexpr Flavor kFlavors[] = {
    {llama3, "8B", 32, 4096, 32, 8, 14336, 128256},
    {llama3, "70B", 80, 8192, 64, 8, 28672, 128256},
    {llama3, "405B", 126, 16384, 128, 8, 53248, 128256},
    {qwen3, "8B", 36, 4096, 32, 8, 12288, 151936},
    {qwen3, "14B", 40, 5120, 40, 8, 17408, 151936},
    {qwen3, "32B", 64, 5120, 64, 8, 25600, 151936},
    {qwen3, "30B-A3B", 48, 2048, 32, 4, 768, 151936, 128, 8},
    {qwen3, "235B-A22B", 94, 4096, 64, 4, 1536, 151936, 128, 8},
    {deepseek_v3, "671B", 61, 7168, 128, 128, 2048, 129280, 256, 8},
    {gpt_oss, "20b", 24, 2880, 64, 8, 2880, 201088, 32, 4},
    {gpt_oss, "120b", 36, 2880, 64, 8, 2880, 201088, 128, 4},
};
constexpr std::array<std::string_view, 4> kFamilyNames = {"llama3", "qwen3", "deepseek_v3", "gpt_oss"};

// Returns whether the model has a property that no torchtitan model has.
bool is_foreign(const Transformer& t) {
  return !t.causal || !t.rotary || !t.gated || !t.final_norm || t.embedding_norm || t.embedding_width > 0 ||
         t.attention_softcap || t.logit_softcap || t.parallel_residual || t.post_norms || t.dropout ||
         t.norm_biases.value_or(t.biases) || !t.norm_gains || !t.pre_norms || t.projection_bias.has_value() ||
         t.head_bias || t.classes > 0 || !t.no_rotary_layers.empty() ||
         (t.qk_norm && t.qk_norm_gains != QkNormGains::head);
}

std::optional<TorchtitanFamily> family_of(const Transformer& t) {
  if (is_foreign(t)) return std::nullopt;
  if (t.attention_sinks && t.window > 0 && t.biases && t.experts > 0) return gpt_oss;
  if (t.attention_sinks || t.window > 0 || t.biases || t.qkv_biases) return std::nullopt;
  if (t.kv_lora_rank > 0) return t.experts > 0 ? std::optional(deepseek_v3) : std::nullopt;
  if (t.qk_norm) return t.shared_expert == 0 ? std::optional(qwen3) : std::nullopt;
  if (t.experts > 0 || t.tied_embeddings) return std::nullopt;
  const bool usual_heads = t.head_dim == 0 || t.head_dim * t.heads == t.hidden;
  return usual_heads ? std::optional(llama3) : std::nullopt;
}

double inner_of(const Transformer& t) {
  return t.feed_forward > 0 ? t.feed_forward : 4 * t.hidden;
}

bool has_sizes(const Transformer& t, const Flavor& flavor) {
  return t.layers == flavor.layers && t.hidden == flavor.hidden && t.heads == flavor.heads &&
         (t.kv_heads > 0 ? t.kv_heads : t.heads) == flavor.kv_heads && inner_of(t) == flavor.inner &&
         t.vocabulary == flavor.vocabulary && t.experts == flavor.experts &&
         (t.experts == 0 || t.experts_per_token == flavor.chosen) && !t.tied_embeddings;
}

// FeedForward's width is 8/3 dim x ffn_dim_multiplier, rounded up to a multiple of multiple_of: this asks for
// half of multiple_of less than the desired width, so that it is rounded up to it
// (torchtitan/models/llama3/model/model.py).
std::string register_llama3(const Transformer& t, const std::string& flavor) {
  double multiple = 1;
  constexpr double kLargest = 4096;  // the largest in llama3_args
  while (multiple < kLargest &&
         static_cast<std::int64_t>(inner_of(t)) % static_cast<std::int64_t>(2 * multiple) == 0)
    multiple *= 2;
  const auto usual = static_cast<double>(static_cast<std::int64_t>(2 * 4 * t.hidden / 3));
  return fmt::format(
      "llama3_args[\"{}\"] = TransformerModelArgs(dim={}, n_layers={}, n_heads={}, n_kv_heads={}, "
      "vocab_size={}, "
      "ffn_dim_multiplier={:.8g}, multiple_of={})",
      flavor, t.hidden, t.layers, t.heads, t.kv_heads > 0 ? t.kv_heads : t.heads, t.vocabulary,
      (inner_of(t) - multiple / 2) / usual, multiple);
}

std::string register_qwen3(const Transformer& t, const std::string& flavor) {
  return fmt::format(
      "qwen3_args[\"{}\"] = Qwen3ModelArgs(dim={}, n_layers={}, n_heads={}, n_kv_heads={}, head_dim={}, "
      "hidden_dim={}, vocab_size={}, qk_norm=True, enable_weight_tying={})",
      flavor, t.hidden, t.layers, t.heads, t.kv_heads > 0 ? t.kv_heads : t.heads,
      t.head_dim > 0 ? t.head_dim : t.hidden / t.heads, inner_of(t), t.vocabulary,
      t.tied_embeddings ? "True" : "False");
}

}  // namespace

std::optional<TorchtitanModel> torchtitan_model(const Model& model, std::string& reason) {
  const auto* t = std::get_if<Transformer>(&model.shape);
  const std::optional<TorchtitanFamily> family = t ? family_of(*t) : std::nullopt;
  if (!family) {
    reason = fmt::format(
        "torchtitan has no model of the form of {}: it has those of Llama 3, Qwen 3, DeepSeek-V3 and "
        "GPT-OSS.",
        model.title);
    return std::nullopt;
  }
  TorchtitanModel found{kFamilyNames[static_cast<std::size_t>(*family)], "", "", *family};
  const auto* flavor = std::find_if(std::begin(kFlavors), std::end(kFlavors), [&](const Flavor& one) {
    return one.family == *family && has_sizes(*t, one);
  });
  if (flavor != std::end(kFlavors)) {
    found.flavor = flavor->name;
    return found;
  }
  if (t->experts > 0) {
    reason = fmt::format("torchtitan has models of the form of {}, but not of these sizes.", model.title);
    return std::nullopt;
  }
  found.flavor = model.name.empty() ? "scenario" : model.name;
  found.registration =
      *family == llama3 ? register_llama3(*t, found.flavor) : register_qwen3(*t, found.flavor);
  return found;
}

// The presets of this program by [model] name and flavor: those of kFlavors, and Llama 2 of the first
// releases.
struct FlavorPreset {
  std::string_view model, flavor, preset;
  double layers;
};
constexpr FlavorPreset kPresets[] = {
    {"llama3", "8B", "llama3-8b", 32},
    {"llama3", "70B", "llama3-70b", 80},
    {"llama3", "405B", "llama3-405b", 126},
    {"llama2", "7B", "llama2-7b", 32},
    {"llama2", "13B", "llama2-13b", 40},
    {"llama2", "70B", "llama2-70b", 80},
    {"qwen3", "8B", "qwen3-8b", 36},
    {"qwen3", "14B", "qwen3-14b", 40},
    {"qwen3", "32B", "qwen3-32b", 64},
    {"qwen3", "30B-A3B", "qwen3-30b-a3b", 48},
    {"qwen3", "235B-A22B", "qwen3-235b-a22b", 94},
    {"deepseek_v3", "671B", "deepseek-v3", 61},
    {"gpt_oss", "20b", "gpt-oss-20b", 24},
    {"gpt_oss", "120b", "gpt-oss-120b", 36},
};

TorchtitanPreset torchtitan_preset(std::string_view name, std::string_view flavor) {
  for (const FlavorPreset& one : kPresets)
    if (one.model == name && one.flavor == flavor) return {one.preset, one.layers};
  return {};
}

}  // namespace rehearse
