#include "models/families/read_family.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/transformer_limits.hpp"

namespace rehearse::families {
namespace {

using Config = HuggingFaceConfig;

// The longest sequence assumed if a config gives only the limit of the context: Llama 3 is pre-trained on
// 8,192 tokens (Grattafiori et al. 2024, arXiv 2407.21783, section 3.4.1) and reaches its 131,072 in a short
// final stage.
constexpr double kUsualSequence = 8192;

// Names of kinds of layers, for each of which the next constant says whether it sees all keys.
constexpr std::array<std::string_view, 8> kLayerTypes = {
    "full_attention", "sliding_attention", "attention", "chunked_attention", "global", "local", "full",
    "sliding"};
constexpr std::array<std::string_view, 2> kFeedForwardTypes = {"dense", "sparse"};
constexpr Keys kLayerTypesKeys = "layer_types|attention_layers";

std::optional<double> unless_required(double number) {
  return number > 0 ? std::optional(number) : std::nullopt;
}

bool has_soft_cap(const Config& c, const Number& cap) {
  if (cap.keys.empty() || !c.has(cap.keys)) return cap.otherwise > 0;
  const auto* value = c.find(cap.keys);
  if (value && (!value->is_number() || value->get<double>() <= 0))
    c.refuse(cap.keys, describe(*value), "a number above 0, or null");
  return value != nullptr;
}

double probability(const Config& c, const Number& number) {
  return number.keys.empty() ? number.otherwise : c.probability(number.keys, number.otherwise);
}

class FamilyReader {
public:
  FamilyReader(const Config& config, const Family& family, Model& model)
      : c_(config), f_(family), model_(model) {}

  Transformer read() {
    refuse_others();
    sizes();
    biases();
    positions();
    forms();
    if (f_.latent.keys_rank.otherwise > 0)
      latent();
    else
      heads();
    windows();
    no_rotary();
    if (!f_.experts.count.keys.empty()) experts();
    if (f_.encoder.is) encoder();
    predicted_ahead();
    if (!missing_.empty())
      model_.notes.push_back(
          fmt::format("The file leaves out {}: {} the library's default{}.", fmt::join(missing_, ", "),
                      missing_.size() == 1 ? "it is" : "they are", missing_.size() == 1 ? "" : "s"));
    return t_;
  }

private:
  bool is(const Switch& one) const { return read_switch(c_, one); }

  // A default above `max`, which follows from another key, is as good as none.
  double whole(const Number& number, std::int64_t max, std::int64_t min = 1) const {
    if (number.keys.empty()) return number.otherwise;
    const bool fits =
        number.otherwise >= static_cast<double>(min) && number.otherwise <= static_cast<double>(max);
    return c_.whole_of_all(number.keys, max, fits ? std::optional(number.otherwise) : std::nullopt, min);
  }

  // A size that the library replaces where the file has none, which is said.
  double size(Keys keys, std::int64_t max, double otherwise) {
    if (!c_.find(keys) && otherwise > 0)
      missing_.push_back(fmt::format("{} ({:.0f})", c_.name(keys), otherwise));
    return c_.whole(keys, max, unless_required(otherwise));
  }

  void refuse_others() const {
    for (const std::string_view one : f_.only) {
      const std::size_t equals = one.find('=');
      const std::string_view key = one.substr(0, equals), wanted = one.substr(equals + 1);
      const auto* value = c_.find(key);
      if (!value) continue;
      if (wanted == "true" || wanted == "false") {
        if (c_.boolean(key, false) != (wanted == "true")) c_.refuse(key, value->dump(), std::string(wanted));
      } else if (wanted == "0") {
        if (!value->is_number() || value->get<double>() != 0) c_.refuse(key, describe(*value), "0");
      } else {
        const std::array<std::string_view, 1> known = {wanted};
        c_.choice(key, value, known);
      }
    }
  }

  void sizes() {
    const SizeKeys& k = f_.keys;
    t_.hidden = size(k.hidden, kMaxWidth, f_.sizes.hidden);
    t_.layers = static_cast<int>(size(k.layers, kMaxLayers, f_.sizes.layers));
    t_.heads = size(k.heads, kMaxHeads, f_.sizes.heads);
    if (!f_.inner_ratio.keys.empty()) {
      t_.feed_forward =
          std::floor(c_.number(f_.inner_ratio.keys, 0.001, 1000, f_.inner_ratio.otherwise) * t_.hidden);
      t_.feed_forward = std::max(1.0, t_.feed_forward);
    } else if (f_.sizes.inner > 0) {
      t_.feed_forward = size(k.inner, kMaxInner, f_.sizes.inner);
    } else {
      t_.feed_forward = c_.whole(k.inner, kMaxInner, 4 * t_.hidden);
    }
    t_.feed_forward = std::max(1.0, std::floor(t_.feed_forward / f_.inner_parts));
    if (f_.patch_size.otherwise > 0) return image();
    t_.vocabulary = size(k.vocabulary, kMaxTokens, f_.sizes.vocabulary);
    limit_ = c_.whole(k.context, kMaxTokens, unless_required(f_.sizes.context));
    if (f_.position_rows < 0 && limit_ <= -f_.position_rows)
      c_.refuse(k.context, fmt::format("{}", limit_), fmt::format("above {}", -f_.position_rows));
    if (f_.position_rows < 0) limit_ += f_.position_rows;
    t_.sequence_length = std::min(limit_, kUsualSequence);
    t_.context_limit = limit_ > kUsualSequence ? limit_ : 0;
  }

  void image() {
    t_.image_size = whole(f_.image_size, kMaxImage);
    t_.patch_size = whole(f_.patch_size, static_cast<std::int64_t>(t_.image_size));
    c_.divides(f_.patch_size.keys, t_.patch_size, f_.image_size.keys, t_.image_size);
    t_.image_channels = whole(f_.image_channels, kMaxWidth);
    t_.sequence_length = limit_ = t_.patches() + 1;
    model_.sample_unit = "images";
  }

  void positions() {
    const bool none = is(f_.alibi);
    t_.rotary = f_.positions == PositionKind::rotary && !none;
    if (f_.positions == PositionKind::learned && !none) {
      t_.positions = limit_;
      t_.position_offset = std::abs(f_.position_rows);
    }
    if (!f_.token_types.keys.empty())
      t_.token_types = c_.whole(f_.token_types.keys, kMaxWidth, f_.token_types.otherwise, 0);
    if (!f_.embedding_width.keys.empty())
      t_.embedding_width =
          c_.whole(f_.embedding_width.keys, kMaxWidth,
                   f_.embedding_width.otherwise > 0 ? f_.embedding_width.otherwise : t_.hidden);
    if (t_.embedding_width == t_.hidden) t_.embedding_width = 0;
    t_.narrow_positions = f_.narrow_positions && t_.embedding_width > 0;
    if (is(f_.relative)) {
      const double most = c_.find("max_relative_positions") && *c_.find("max_relative_positions") == -1
                              ? limit_
                              : c_.whole("max_relative_positions", kMaxTokens / 4, limit_, 0);
      const double buckets = c_.find("position_buckets") && *c_.find("position_buckets") == -1
                                 ? 0
                                 : c_.whole("position_buckets", kMaxTokens / 4, 0, 0);
      t_.relative_positions = 2 * (buckets > 0 ? buckets : most > 0 ? most : limit_);
      t_.relative_weights = is(f_.relative_weights);
      model_.notes.emplace_back(
          "Scores with relative positions have no fused kernels: attention is unfused.");
    }
  }

  void biases() {
    t_.biases = is(f_.biases);
    t_.qkv_biases = is(f_.qkv_biases);
    const auto unless_same = [&](const Switch& one) {
      const bool found = is(one);
      return found == t_.biases ? std::nullopt : std::optional(found);
    };
    t_.projection_bias = unless_same(f_.projection_bias);
    t_.norm_gains = is(f_.norm_gains);
    t_.norm_biases = unless_same(f_.norm_biases);
    t_.head_bias = is(f_.head_bias);
  }

  void forms() {
    t_.causal = !f_.encoder.is;
    t_.gated = f_.gated;
    t_.relu = !t_.gated && c_.text(f_.activation, std::string(f_.activation_otherwise)).starts_with("relu");
    if (t_.gated) c_.text(f_.activation, "");
    t_.tied_embeddings = f_.untied_hidden == t_.hidden && !c_.find(f_.tied.keys) ? false : is(f_.tied);
    t_.final_norm = is(f_.final_norm);
    t_.embedding_norm = is(f_.embedding_norm);
    t_.parallel_residual = is(f_.parallel);
    t_.shared_norm = t_.parallel_residual && is(f_.shared_norm);
    if (!f_.parallel_norms.keys.empty() && t_.parallel_residual) {
      const double norms = c_.whole(f_.parallel_norms.keys, 2, 0);
      if (norms > 0) t_.shared_norm = norms == 1;
    }
    t_.pre_norms = f_.pre_norms;
    t_.post_norms = f_.post_norms;
    t_.attention_sinks = f_.attention_sinks;
    t_.attention_softcap = has_soft_cap(c_, f_.score_cap);
    t_.logit_softcap = has_soft_cap(c_, f_.logit_cap);
    t_.qk_norm = is(f_.qk_norm);
    if (t_.qk_norm)
      t_.qk_norm_gains = static_cast<QkNormGains>(
          std::find(kQkNormGainsNames.begin(), kQkNormGainsNames.end(), f_.qk_norm_gains) -
          kQkNormGainsNames.begin());
    const double embedding = probability(c_, f_.embedding_dropout),
                 attention = probability(c_, f_.attention_dropout);
    t_.dropout = probability(c_, f_.dropout) > 0;
    if ((embedding > 0) != t_.dropout) t_.embedding_dropout = embedding > 0;
    if ((attention > 0) != t_.dropout) t_.attention_dropout = attention > 0;
  }

  void heads() {
    const Keys keys = f_.keys.kv_heads;
    if (!is(f_.grouped))
      t_.kv_heads = is(f_.multi_query) ? 1 : t_.heads;
    else if (c_.has(keys) || f_.sizes.kv_heads == 0)
      t_.kv_heads = c_.whole(keys, kMaxHeads, t_.heads);
    else
      t_.kv_heads = f_.sizes.kv_heads;
    c_.divides(keys, t_.kv_heads, f_.keys.heads, t_.heads);
    t_.head_dim = c_.whole(f_.keys.head_dim, kMaxWidth, f_.sizes.head_dim);
    if (t_.head_dim == 0) c_.divides(f_.keys.heads, t_.heads, f_.keys.hidden, t_.hidden);
    if (t_.head_dim * t_.heads == t_.hidden) t_.head_dim = 0;
  }

  void latent() {
    const Latent& l = f_.latent;
    const double plain = c_.whole(l.plain.keys, kMaxWidth / 2, l.plain.otherwise);
    t_.rope_head_dim = c_.whole(l.rotary.keys, kMaxWidth / 2, l.rotary.otherwise);
    t_.head_dim = plain + t_.rope_head_dim;
    t_.value_head_dim = c_.whole(l.value.keys, kMaxWidth, l.value.otherwise);
    t_.kv_lora_rank = c_.whole(l.keys_rank.keys, kMaxWidth, l.keys_rank.otherwise);
    t_.q_lora_rank = c_.whole_or_none(l.queries_rank.keys, kMaxWidth, l.queries_rank.otherwise);
    t_.kv_heads = t_.heads;
  }

  // Expands GPT-Neo's attention_types: [[["global", "local"], 12]].
  std::vector<bool> expanded_types() const {
    const auto* value = c_.find("attention_types");
    if (!value) return {};
    const auto refuse = [&]() {
      c_.refuse("attention_types", describe(*value), "an array of [[\"global\", \"local\"], REPEATS]");
    };
    if (!value->is_array()) refuse();
    std::vector<bool> full;
    for (const auto& group : *value) {
      if (!group.is_array() || group.size() != 2 || !group[0].is_array() || group[0].empty() ||
          group[0].size() > static_cast<std::size_t>(kMaxLayers) || !group[1].is_number_unsigned())
        refuse();
      for (std::uint64_t i = std::min<std::uint64_t>(group[1].get<std::uint64_t>(), kMaxLayers); i > 0; --i) {
        for (const auto& one : group[0]) {
          if (one != "global" && one != "local") refuse();
          full.push_back(one == "global");
        }
        if (full.size() > static_cast<std::size_t>(t_.layers)) break;
      }
    }
    return full;
  }

  // Returns which layers see all keys, or nothing if no list says so.
  std::vector<bool> listed_full_layers() const {
    std::vector<bool> full = expanded_types();
    if (!full.empty()) {  // the library's own default is shorter than some models
      const std::size_t given = full.size();
      for (std::size_t i = given; i < static_cast<std::size_t>(t_.layers); ++i)
        full.push_back(full[i % given]);
      return full;
    }
    const bool ends_in_g =
        !f_.window.every.empty() && c_.find(f_.window.every) && c_.find(f_.window.every)->is_string();
    if (ends_in_g && !c_.find(kLayerTypesKeys)) {  // "LLLG"
      const auto& pattern = c_.find(f_.window.every)->get_ref<const std::string&>();
      if (pattern.empty() || pattern.find_first_not_of("LG") != std::string::npos)
        c_.refuse(f_.window.every, describe(*c_.find(f_.window.every)), "a text of L (local) and G (global)");
      for (int i = 0; i < t_.layers; ++i)
        full.push_back(pattern[static_cast<std::size_t>(i) % pattern.size()] == 'G');
      return full;
    }
    for (const std::size_t type :
         c_.choices(kLayerTypesKeys, static_cast<std::size_t>(t_.layers), kLayerTypes))
      full.push_back(type % 2 == 0);
    return full;
  }

  bool in_group(int layer, int every, int offset) const {
    return every > 0 && (layer + 1) % every == (offset == 0 ? 0 : 1 % every);
  }

  void windows() {
    const Window& w = f_.window;
    const std::vector<bool> listed = listed_full_layers();
    if (w.width.empty()) {
      if (std::find(listed.begin(), listed.end(), false) != listed.end())
        c_.refuse(kLayerTypesKeys, "a list with sliding windows",
                  fmt::format("full attention in models of type \"{}\"", f_.type));
      return;
    }
    if (!is(w.used)) return;
    t_.window = c_.whole_or_none(w.width, kMaxTokens, w.otherwise);
    if (t_.window == 0) return;
    int every = w.full_every;
    if (!w.every.empty() && listed.empty())
      every = static_cast<int>(c_.whole(w.every, kMaxLayers, w.full_every));
    const double first = w.first.empty() ? 0 : c_.whole(w.first, kMaxLayers, w.first_otherwise, 0);
    const std::vector<bool> rotary = w.chunks ? rotary_layers() : std::vector<bool>();
    for (int i = 0; i < t_.layers; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool full = !listed.empty() ? listed[at]
                        : w.chunks      ? !rotary[at]
                                        : i < first || in_group(i, every, w.full_offset);
      if (full) t_.full_attention_layers.push_back(i);
    }
    if (w.chunks && t_.window < limit_)
      model_.notes.push_back(
          fmt::format("Attention in chunks of {:.0f} tokens is simulated as a window of that many keys, "
                      "which is the same for "
                      "sequences that are not longer.",
                      t_.window));
    if (t_.full_attention_layers.size() < static_cast<std::size_t>(t_.layers)) return;
    t_.window = 0;
    t_.full_attention_layers.clear();
  }

  // Which layers rotate queries and keys.
  std::vector<bool> rotary_layers() const {
    const NoRotary& n = f_.no_rotary;
    std::vector<bool> rotary;
    const auto* list = n.list.empty() ? nullptr : c_.find(n.list);
    if (list && !(list->is_array() && list->empty()))
      rotary = c_.flags(n.list, static_cast<std::size_t>(t_.layers));
    if (!rotary.empty()) return rotary;
    const int every =
        n.every_keys.empty() ? n.every : static_cast<int>(c_.whole(n.every_keys, kMaxLayers, n.every));
    for (int i = 0; i < t_.layers; ++i) rotary.push_back(!in_group(i, every, 0));
    return rotary;
  }

  void no_rotary() {
    if (!t_.rotary) return;
    if (f_.no_rotary.full_layers) {  // where all layers see all keys, all rotate
      t_.no_rotary_layers = t_.full_attention_layers;
      return;
    }
    const std::vector<bool> rotary = rotary_layers();
    for (int i = 0; i < t_.layers; ++i)
      if (!rotary[static_cast<std::size_t>(i)]) t_.no_rotary_layers.push_back(i);
  }

  std::vector<int> layers_without_experts() const {
    const Experts& e = f_.experts;
    const auto count = static_cast<std::size_t>(t_.layers);
    std::vector<bool> sparse;
    if (const auto* list = e.each.empty() ? nullptr : c_.find(e.each); list && list->is_array())
      sparse = c_.flags(e.each, count);
    for (const std::size_t kind : c_.choices("mlp_layer_types", count, kFeedForwardTypes))
      sparse.push_back(kind == 1);
    if (!e.sparse.empty() && c_.find(e.sparse)) {
      sparse.assign(count, false);
      for (const int layer : c_.layers(e.sparse, t_.layers)) sparse[static_cast<std::size_t>(layer)] = true;
    }
    std::vector<int> dense;
    if (sparse.size() >= count) {
      for (int i = 0; i < t_.layers; ++i)
        if (!sparse[static_cast<std::size_t>(i)]) dense.push_back(i);
      return dense;
    }
    const double first = whole(e.first, kMaxLayers, 0);
    const bool to_the_last = e.last.keys.empty() || !c_.find(e.last.keys) || *c_.find(e.last.keys) == -1;
    const double last = to_the_last ? t_.layers : whole(e.last, kMaxLayers, 0);
    const int step = static_cast<int>(whole(e.step, kMaxLayers));
    const std::vector<int> plain = e.dense.empty() ? std::vector<int>() : c_.layers(e.dense, t_.layers);
    for (int i = 0; i < t_.layers; ++i)
      if (i < first || i > last || (e.from_one ? i + 1 : i) % step != 0 ||
          std::binary_search(plain.begin(), plain.end(), i))
        dense.push_back(i);
    return dense;
  }

  // DeepSeek V3's bias for balancing the load of the experts is set by a rule and not trained by a gradient.
  // As in the library, it is not a parameter.
  void experts() {
    const Experts& e = f_.experts;
    const double count = whole(e.count, kMaxExperts),
                 chosen = whole(e.chosen, static_cast<std::int64_t>(count));
    const double width = e.width.keys.empty()
                             ? t_.feed_forward
                             : c_.whole_of_all(e.width.keys, kMaxInner,
                                               e.width.otherwise > 0 ? e.width.otherwise : t_.feed_forward);
    const double dense_width = e.dense_width.keys.empty() ? t_.feed_forward : whole(e.dense_width, kMaxInner);
    double shared = whole(e.shared_width, kMaxInner, 0);
    if (shared == 0) {  // together they are equivalent to one wide expert
      const auto most = std::max<std::int64_t>(1, kMaxInner / static_cast<std::int64_t>(width));
      const double of_them = e.shared_count.keys.empty()
                                 ? e.shared_count.otherwise
                                 : c_.whole_of_all(e.shared_count.keys, most, e.shared_count.otherwise, 0);
      shared = of_them * width;
    }
    std::vector<int> dense = layers_without_experts();
    const bool none =
        dense.size() == static_cast<std::size_t>(t_.layers) || (count == 1 && e.count.otherwise == 1);
    if (none) {
      t_.feed_forward = dense_width;
      return;
    }
    t_.experts = count;
    t_.experts_per_token = chosen;
    expert_groups();
    t_.router_bias = e.router_bias;
    t_.dense_feed_forward = dense.empty() ? 0 : dense_width;
    t_.feed_forward = width;
    t_.dense_layers = std::move(dense);
    t_.shared_expert = shared;
    if (shared > 0) t_.shared_expert_gate = e.shared_gate;
  }

  // Node-limited routing, which DeepSeek's topk_method "greedy" leaves out.
  void expert_groups() {
    if (c_.find("n_group") == nullptr || c_.find("topk_group") == nullptr) return;
    const double groups = c_.whole("n_group", static_cast<std::int64_t>(t_.experts)),
                 chosen = c_.whole("topk_group", static_cast<std::int64_t>(groups));
    if (groups == chosen || c_.text("topk_method", "") == "greedy") return;
    const double each = t_.experts / groups;
    if (each != std::floor(each) || chosen * each < t_.experts_per_token)
      c_.refuse("n_group", fmt::format("{}, with topk_group {}", groups, chosen),
                fmt::format("equal groups of {} experts, so large that topk_group of them have at least {}",
                            t_.experts, t_.experts_per_token));
    t_.expert_groups = groups;
    t_.groups_per_token = chosen;
  }

  double labels() const {
    if (const auto* names = c_.find("id2label"); names && names->is_object() && !names->empty())
      return std::min<double>(static_cast<double>(names->size()), kMaxWidth);
    return c_.whole("num_labels|num_classes", kMaxWidth, 2);
  }

  // The head that the encoder is trained with, by the class in `architectures`.
  void encoder() {
    constexpr std::array<std::string_view, 8> kClasses = {"Model",
                                                          "ForMaskedLM",
                                                          "ForPreTraining",
                                                          "ForSequenceClassification",
                                                          "ForMultipleChoice",
                                                          "ForTokenClassification",
                                                          "ForQuestionAnswering",
                                                          "ForImageClassification"};
    const bool image = t_.patch_size > 0;
    std::size_t kind = image ? 0 : 1;
    const auto* classes = c_.find("architectures");
    if (classes && (!classes->is_array() || classes->size() != 1 || !classes->front().is_string()))
      c_.refuse("architectures", describe(*classes), "an array of one class");
    if (classes) {
      const auto& found = classes->front().get_ref<const std::string&>();
      const auto* match = std::find_if(kClasses.begin(), kClasses.end(),
                                       [&](std::string_view one) { return found.ends_with(one); });
      const auto at = static_cast<std::size_t>(match - kClasses.begin());
      const bool fits = image ? at == 0 || at == 7 : at < 7;
      if (!fits || found.ends_with("LMHeadModel"))
        c_.refuse(
            "architectures", "\"" + found + "\"",
            image ? "a class ...Model or ...ForImageClassification"
                  : fmt::format("a class ...{}", fmt::join(kClasses.begin(), kClasses.end() - 1, ", ...")));
      kind = static_cast<std::size_t>(match - kClasses.begin());
    } else if (!image) {
      model_.notes.emplace_back(
          "The file names no class (architectures): the encoder has the head of a masked language model.");
    }
    const bool pre_training = kind == 2;
    t_.pooler = f_.encoder.pooler && (kind == 0 || pre_training);
    t_.masked_lm_head = kind == 1 || (pre_training && !f_.encoder.token_pooler);
    if (pre_training && f_.encoder.token_pooler) {  // ELECTRA's discriminator: which tokens were replaced
      t_.pooler = t_.classes_of_tokens = true;
      t_.classes = 1;
    }
    if (kind == 3 || kind == 4) {
      t_.pooler = f_.encoder.classifier_pooler;
      t_.classes = kind == 4 ? 1 : labels();
    }
    if (kind == 5 || kind == 6) {
      t_.classes_of_tokens = true;
      t_.classes = kind == 6 ? 2 : labels();
    }
    if (kind == 7) t_.classes = labels();
    if (!t_.masked_lm_head) t_.tied_embeddings = false;
  }

  // A module for multi-token prediction is a layer, the norms of its two inputs and of its result, and a
  // product that joins the inputs: DeepSeek-V3 (arXiv 2412.19437), section 2.2. Embedding and output layer
  // are the model's.
  void predicted_ahead() {
    if (f_.predicted_ahead.keys.empty() || f_.encoder.is) return;
    const double ahead = c_.whole(f_.predicted_ahead.keys, kMaxLayers, f_.predicted_ahead.otherwise, 0);
    if (ahead == 0) return;
    const std::string key = c_.name(f_.predicted_ahead.keys);
    model_.notes.push_back(
        fmt::format("The module for multi-token prediction ({}) is left out of the model.", key));
    Model one;
    Transformer last = t_;
    last.window = 0;
    last.full_attention_layers.clear();
    last.no_rotary_layers.clear();
    last.layers = 1;
    if (!last.dense_layers.empty() && last.dense_layers.back() == t_.layers - 1 && last.experts > 0) {
      last.dense_layers = {0};
    } else {
      last.dense_layers.clear();
    }
    one.shape = last;
    const double layer = layer_costs(one, {})[1].parameters;
    model_.left_out.push_back({fmt::format("multi-token prediction ({})", key),
                               ahead * (layer + 2 * t_.hidden * t_.hidden + 3 * t_.hidden)});
  }

  const Config& c_;
  const Family& f_;
  Model& model_;
  Transformer t_;
  double limit_ = 0;  // of the context
  std::vector<std::string> missing_;
};

}  // namespace

bool read_switch(const HuggingFaceConfig& config, const Switch& one) {
  if (one.keys.empty()) return one.otherwise;
  if (one.keys.front() == '!') return !config.boolean(one.keys.substr(1), !one.otherwise);
  return config.boolean(one.keys, one.otherwise);
}

Transformer read_family(const HuggingFaceConfig& config, const Family& family, Model& model) {
  return FamilyReader(config, family, model).read();
}

}  // namespace rehearse::families
