// Reads the config.json of Hugging Face transformers. A key that says nothing about shapes is passed over, as
// the library does; one that asks for a shape which is not known here is refused. Keys that the library fills
// in have its defaults; those that decide how large the model is are required.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "models/base/toml_value.hpp"
#include "models/kernels.hpp"

namespace rehearse {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 6> kFamilies = {"bert",    "gpt2",  "llama",
                                                       "mixtral", "qwen2", "qwen2_moe"};
constexpr std::array<std::string_view, 3> kBertClasses = {"BertModel", "BertForMaskedLM",
                                                          "BertForPreTraining"};
// How configs of mixtures of experts call the number of experts.
constexpr std::array<std::string_view, 4> kExpertKeys = {"num_local_experts", "num_experts",
                                                         "n_routed_experts", "moe_num_experts"};

std::string describe(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::string:
      return "a string " + in_quotes(value.get_ref<const std::string&>());
    case Json::value_t::array:
      return fmt::format("an array of {}", value.size());
    case Json::value_t::object:
      return "an object";
    default:  // numbers and booleans
      return value.dump();
  }
}

class Config {
public:
  Config(std::string path, const std::string& text) : path_(std::move(path)) {
    try {
      json_ = Json::parse(text);
    } catch (const Json::parse_error& error) {
      refuse_syntax(text, error.byte);
    } catch (const Json::exception&) {  // a number beyond what a double holds
      throw InputError({path_, 0, 0}, "has a number out of range; allowed: the config.json of a model");
    }
    if (!json_.is_object()) {
      throw InputError({path_, 0, 0}, fmt::format("is {}; allowed: an object, {{...}}", describe(json_)));
    }
  }

  // Absent and null are the same to the library.
  const Json* find(std::string_view key) const {
    const auto found = json_.find(std::string(key));
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  double whole(std::string_view key, std::int64_t max, std::optional<double> fallback = std::nullopt,
               std::int64_t min = 1) const {
    const std::string allowed =
        min == max ? fmt::format("the integer {}", min) : fmt::format("an integer from {} to {}", min, max);
    const Json* value = find(key);
    if (!value && fallback) return *fallback;
    if (!value) refuse_missing(key, allowed);
    if (!value->is_number_integer()) refuse(key, describe(*value), allowed);
    // Unsigned ones may be beyond int64.
    const bool huge = value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX;
    if (huge || value->get<std::int64_t>() < min || value->get<std::int64_t>() > max) {
      refuse(key, describe(*value), allowed);
    }
    return static_cast<double>(value->get<std::int64_t>());
  }

  double probability(std::string_view key, double fallback) const {
    const Json* value = find(key);
    if (!value) return fallback;
    if (!value->is_number() || value->get<double>() < 0 || value->get<double>() >= 1) {
      refuse(key, describe(*value), "a number from 0 to below 1");
    }
    return value->get<double>();
  }

  bool boolean(std::string_view key, bool fallback) const {
    const Json* value = find(key);
    if (!value) return fallback;
    if (!value->is_boolean()) refuse(key, describe(*value), "true or false");
    return value->get<bool>();
  }

  // Refuses what this version has no shapes for.
  void only(std::string_view key, bool known) const {
    if (boolean(key, known) != known) refuse(key, known ? "false" : "true", known ? "true" : "false");
  }

  // One of `allowed`; its index.
  std::size_t choice(std::string_view key, const Json* value,
                     std::span<const std::string_view> allowed) const {
    const std::string names = fmt::format("\"{}\"", fmt::join(allowed, "\", \""));
    if (!value) refuse_missing(key, names);
    if (!value->is_string()) refuse(key, describe(*value), names);
    const auto found = std::find(allowed.begin(), allowed.end(), value->get_ref<const std::string&>());
    if (found == allowed.end()) refuse(key, in_quotes(value->get_ref<const std::string&>()), names);
    return static_cast<std::size_t>(found - allowed.begin());
  }

  void divides(std::string_view key, double value, std::string_view of, double whole) const {
    if (std::fmod(whole, value) != 0) {
      refuse(key, fmt::format("{}", value), fmt::format("a divisor of {}, {}", of, whole));
    }
  }

  [[noreturn]] void refuse(std::string_view key, const std::string& found, const std::string& allowed) const {
    throw InputError({path_, 0, 0}, fmt::format("{} is {}; allowed: {}", key, found, allowed));
  }

private:
  [[noreturn]] void refuse_missing(std::string_view key, const std::string& allowed) const {
    throw InputError({path_, 0, 0}, fmt::format("{} is missing; allowed: {}", key, allowed));
  }

  // `byte` counts from 1 and is that of the last character read.
  [[noreturn]] void refuse_syntax(const std::string& text, std::size_t byte) const {
    const std::size_t at = std::min(byte > 0 ? byte - 1 : 0, text.size());
    const std::string_view before = std::string_view(text).substr(0, at);
    const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
    const std::size_t begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    // Characters, not the bytes that UTF-8 continues them with.
    const auto column =
        static_cast<int>(std::count_if(before.begin() + static_cast<std::ptrdiff_t>(begin), before.end(),
                                       [](char c) { return (c & 0xC0) != 0x80; })) +
        1;
    const std::string found =
        at == text.size() ? "the file ends too early" : "not JSON from here on, or just before";
    throw InputError({path_, line, column}, found + "; allowed: the config.json of a model");
  }

  std::string path_;
  Json json_;
};

constexpr std::int64_t kMaxLayers = 10'000, kMaxWidth = 1'000'000, kMaxHeads = 100'000,
                       kMaxInner = 10'000'000, kMaxTokens = 100'000'000, kMaxExperts = 10'000;

Transformer read_gpt2(const Config& c) {
  Transformer t;
  t.hidden = c.whole("n_embd", kMaxWidth);
  t.layers = static_cast<int>(c.whole("n_layer", kMaxLayers));
  t.heads = c.whole("n_head", kMaxHeads);
  c.divides("n_head", t.heads, "n_embd", t.hidden);
  t.feed_forward = c.whole("n_inner", kMaxInner, 4 * t.hidden);
  t.vocabulary = c.whole("vocab_size", kMaxTokens);
  t.sequence_length = t.positions = c.whole("n_positions", kMaxTokens);
  t.tied_embeddings = c.boolean("tie_word_embeddings", true);
  t.dropout = c.probability("resid_pdrop", 0.1) + c.probability("attn_pdrop", 0.1) +
                  c.probability("embd_pdrop", 0.1) >
              0;
  c.only("add_cross_attention", false);
  return t;
}

// hidden_size and the like, which newer families share.
Transformer read_common(const Config& c) {
  Transformer t;
  t.hidden = c.whole("hidden_size", kMaxWidth);
  t.layers = static_cast<int>(c.whole("num_hidden_layers", kMaxLayers));
  t.heads = c.whole("num_attention_heads", kMaxHeads);
  c.divides("num_attention_heads", t.heads, "hidden_size", t.hidden);
  t.feed_forward = c.whole("intermediate_size", kMaxInner);
  t.vocabulary = c.whole("vocab_size", kMaxTokens);
  t.sequence_length = c.whole("max_position_embeddings", kMaxTokens);
  return t;
}

Transformer read_llama(const Config& c, bool qkv_biases) {
  Transformer t = read_common(c);
  t.kv_heads = c.whole("num_key_value_heads", kMaxHeads, t.heads);
  c.divides("num_key_value_heads", t.kv_heads, "num_attention_heads", t.heads);
  const double head = t.hidden / t.heads;
  if (c.whole("head_dim", kMaxWidth, head) != head) {
    c.refuse("head_dim", describe(*c.find("head_dim")),
             fmt::format("{}, hidden_size / num_attention_heads", head));
  }
  c.only("attention_bias", qkv_biases);
  c.only("mlp_bias", false);
  c.only("use_sliding_window", false);
  t.gated = t.rotary = true;
  t.biases = false;
  t.qkv_biases = qkv_biases;
  t.tied_embeddings = c.boolean("tie_word_embeddings", false);
  t.dropout = c.probability("attention_dropout", 0) > 0;
  return t;
}

Transformer read_bert(const Config& c) {
  Transformer t = read_common(c);
  t.positions = t.sequence_length;
  t.token_types = c.whole("type_vocab_size", kMaxWidth);
  t.causal = t.final_norm = false;
  t.embedding_norm = true;
  t.tied_embeddings = c.boolean("tie_word_embeddings", true);
  t.dropout =
      c.probability("hidden_dropout_prob", 0.1) + c.probability("attention_probs_dropout_prob", 0.1) > 0;
  c.only("is_decoder", false);
  c.only("add_cross_attention", false);
  if (const Json* kind = c.find("position_embedding_type")) {
    constexpr std::array<std::string_view, 1> kAbsolute = {"absolute"};
    c.choice("position_embedding_type", kind, kAbsolute);
  }
  // Which heads the encoder is trained with.
  const Json* classes = c.find("architectures");
  if (classes && (!classes->is_array() || classes->size() != 1)) {
    c.refuse("architectures", describe(*classes), "an array of one class");
  }
  const std::size_t index = c.choice("architectures", classes ? &classes->front() : nullptr, kBertClasses);
  t.pooler = index != 1;
  t.masked_lm_head = index != 0;
  return t;
}

Transformer read_mixtral(const Config& c) {
  Transformer t = read_llama(c, false);
  t.experts = c.whole("num_local_experts", kMaxExperts, 8);
  t.experts_per_token = c.whole("num_experts_per_tok", static_cast<std::int64_t>(t.experts), 2);
  return t;
}

// The experts have a width of their own; intermediate_size is that of layers without experts, and there are
// none.
Transformer read_qwen2_moe(const Config& c) {
  Transformer t = read_llama(c, true);
  t.feed_forward = c.whole("moe_intermediate_size", kMaxInner);
  t.shared_expert = c.whole("shared_expert_intermediate_size", kMaxInner);
  t.experts = c.whole("num_experts", kMaxExperts);
  t.experts_per_token = c.whole("num_experts_per_tok", static_cast<std::int64_t>(t.experts));
  c.whole("decoder_sparse_step", 1, 1);
  const Json* plain = c.find("mlp_only_layers");
  if (plain && !(plain->is_array() && plain->empty()))
    c.refuse("mlp_only_layers", describe(*plain), "[]: experts in every layer");
  return t;
}

}  // namespace

Transformer read_huggingface(const std::string& path) {
  return parse_huggingface(read_text_file(path, "config.json"), path);
}

Transformer parse_huggingface(const std::string& text, const std::string& path) {
  const Config c(path, text);
  const Json* family = c.find("model_type");
  const std::size_t index = c.choice("model_type", family, kFamilies);
  const bool of_experts = index == 3 || index == 5;
  for (const std::string_view key : kExpertKeys) {
    if (of_experts || !c.find(key)) continue;
    c.refuse(key, describe(*c.find(key)) + fmt::format(" in a model of type \"{}\"", kFamilies[index]),
             "experts in models of type \"mixtral\" or \"qwen2_moe\"");
  }
  switch (index) {
    case 0:
      return read_bert(c);
    case 1:
      return read_gpt2(c);
    case 2:
      return read_llama(c, false);
    case 3:
      return read_mixtral(c);
    case 4:
      return read_llama(c, true);
    default:
      return read_qwen2_moe(c);
  }
}

}  // namespace rehearse
