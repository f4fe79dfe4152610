#include <fmt/format.h>

#include "models/transformer_limits.hpp"
#include "simulator/scenario/reading/readers.hpp"
#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/model_cut.hpp"

namespace rehearse {
namespace {

constexpr std::array<std::string_view, 3> kSentPrecisionNames = {"fp32", "fp16", "bf16"};
constexpr std::array<Precision, 3> kSentPrecisions = {Precision::fp32, Precision::fp16, Precision::bf16};

Precision read_sent_precision(Section& section, std::string_view key, Precision training) {
  Precision fallback = stored_precision(training);
  std::size_t index = 0;
  while (kSentPrecisions[index] != fallback) ++index;
  return kSentPrecisions[section.choice(key, kSentPrecisionNames, index)];
}

bool has_peak(const Device& device, Precision precision) {
  return device.peak_flops[static_cast<std::size_t>(precision)].value > 0;
}

Precision read_precision(Section& section, const Model& model, const Device& device) {
  auto precision = static_cast<Precision>(
      section.choice("precision", kPrecisionNames, static_cast<std::size_t>(default_precision(device))));
  // Measured stage times need no peak.
  if (has_peak(device, precision) || is_profiled(model)) return precision;
  std::string allowed;
  for (std::size_t i = 0; i < kPrecisionNames.size(); ++i) {
    if (!has_peak(device, static_cast<Precision>(i))) continue;
    allowed += fmt::format("{}\"{}\"", allowed.empty() ? "" : ", ", kPrecisionNames[i]);
  }
  section.refuse("precision",
                 fmt::format("\"{}\", which {} does not support", name_of(precision), device.name), allowed);
}

double read_sequence_length(Section& section, const Model& model) {
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  if ((!transformer || transformer->patch_size > 0) && section.has("sequence_length") &&
      !is_profiled(model)) {
    section.refuse_inapplicable("sequence_length",
                                fmt::format("given, but {} is not trained on tokens", model.name),
                                "to leave it out");
  }
  std::int64_t max = transformer && transformer->positions > 0
                         ? static_cast<std::int64_t>(transformer->positions)
                         : kMaxTokens;
  return static_cast<double>(section.integer("sequence_length", 1, max, 0));
}

double read_predicted_tokens(Section& section, const Model& model, double sequence_length) {
  if (!section.has("predicted_tokens")) {
    section.expect({"predicted_tokens"});
    return 0;
  }
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  if (!transformer || !transformer->masked_lm_head)
    section.refuse_inapplicable("predicted_tokens",
                                fmt::format("given, but {} is not a masked language model", model.name),
                                "to leave it out");
  return static_cast<double>(section.integer(
      "predicted_tokens", 1, static_cast<std::int64_t>(tokens_per_sample(model, sequence_length))));
}

// Returns the samples of the entire training, from `tokens`, `samples` or `epochs`; 0 if none of them is
// given.
double read_target_samples(Section& section, const Model& model, double sequence_length) {
  constexpr std::array<std::string_view, 3> kTargets = {"tokens", "samples", "epochs"};
  constexpr std::array<double, 3> kMost = {1e18, 1e18, 1e6};
  std::array<double, 3> targets = {};
  std::string_view given;
  for (std::size_t i = 0; i < kTargets.size(); ++i) {
    targets[i] = section.number(kTargets[i], {0, kMost[i], true}, 0);
    if (!section.has(kTargets[i])) continue;
    if (!given.empty())
      section.refuse(kTargets[i], fmt::format("given with {}", given), "one of tokens, samples, epochs");
    given = kTargets[i];
  }
  const double dataset_samples = section.number("dataset_samples", {0, 1e12, true}, 0);
  if (given == "epochs")
    section.require("dataset_samples", "epochs", "the number of samples in the data set");
  else if (section.has("dataset_samples"))
    section.refuse_inapplicable("dataset_samples", "given", "only with epochs");
  const double tokens_a_sample = tokens_per_sample(model, sequence_length);
  if (given == "tokens" && tokens_a_sample <= 0)
    section.refuse_inapplicable("tokens", fmt::format("given, but {} is not trained on tokens", model.name),
                                "samples or epochs");
  if (given == "tokens") return targets[0] / tokens_a_sample;
  return given == "samples" ? targets[1] : targets[2] * dataset_samples;
}

Recompute read_recompute(Section& section, const Model& model) {
  auto recompute = static_cast<Recompute>(section.choice("recompute", kRecomputeNames, 0));
  if (recompute == Recompute::none) return recompute;
  std::string found = fmt::format("\"{}\"", kRecomputeNames[static_cast<std::size_t>(recompute)]);
  if (is_profiled(model)) {
    section.refuse_inapplicable("recompute", found + ", but the model's times are measured", "\"none\"");
  }
  if (recompute == Recompute::selective && !std::holds_alternative<Transformer>(model.shape)) {
    section.refuse_inapplicable("recompute",
                                found + fmt::format(", but {} has no attention to recompute", model.name),
                                "\"none\", \"full\"");
  }
  if (recompute == Recompute::operators && !std::holds_alternative<Transformer>(model.shape))
    section.refuse_inapplicable("recompute", found + fmt::format(", but {} is not a transformer", model.name),
                                "\"none\", \"full\"");
  return recompute;
}

AttentionChoice read_attention(Section& section, const Model& model, const Device& device,
                               Precision precision, const Framework& framework) {
  const AttentionChoice fallback = default_attention(model, device, precision, framework);
  const auto kernels = static_cast<AttentionKernels>(
      section.choice("attention", kAttentionKernelsNames, static_cast<std::size_t>(fallback.kernels)));
  if (!section.has("attention")) return fallback;
  if (kernels == AttentionKernels::unfused) return {kernels, AttentionReason::given};
  const std::string found = fmt::format("\"{}\"", kAttentionKernelsNames[static_cast<std::size_t>(kernels)]);
  if (!std::holds_alternative<Transformer>(model.shape))
    section.refuse_inapplicable("attention", found + fmt::format(", but {} has no attention", model.name),
                                "no such key");
  if (std::get<Transformer>(model.shape).relative_positions > 0)
    section.refuse_inapplicable(
        "attention", found + fmt::format(", but {} has relative positions", model.name), "\"unfused\"");
  if (stored_precision(precision) == Precision::fp32)
    section.refuse_inapplicable("attention", found + fmt::format(" in {}", name_of(precision)),
                                "\"unfused\", or a precision of which tensors are stored in 16 bits");
  if (device.has(kernels)) return {kernels, AttentionReason::given};
  std::string allowed;
  for (std::size_t i = 0; i < kAttentionKernelsNames.size(); ++i)
    if (device.has(static_cast<AttentionKernels>(i)))
      allowed += fmt::format("{}\"{}\"", allowed.empty() ? "" : ", ", kAttentionKernelsNames[i]);
  section.refuse_inapplicable("attention",
                              found + fmt::format(", for which {} has no efficiency", device.name), allowed);
}

int read_recompute_layers(Section& section, Recompute recompute) {
  const auto layers = static_cast<int>(section.integer("recompute_layers", 1, 1'000'000, 1));
  if (!section.has("recompute_layers")) return 0;
  if (recompute == Recompute::none)
    section.refuse_inapplicable("recompute_layers", fmt::format("{} with recompute = \"none\"", layers),
                                "recompute = \"selective\", \"operators\" or \"full\", or no such key");
  return layers;
}

}  // namespace

Precision default_precision(const Device& device) {
  return has_peak(device, Precision::bf16)   ? Precision::bf16
         : has_peak(device, Precision::fp16) ? Precision::fp16
                                             : Precision::fp32;
}

Training read_training(Section& section, const Model& model, const Device& device,
                       const Framework& framework) {
  Training training;
  training.global_batch = static_cast<double>(section.integer("global_batch", 1, 1'000'000'000));
  training.micro_batch = static_cast<double>(section.integer("micro_batch", 1, 1'000'000, 1));
  training.sequence_length = read_sequence_length(section, model);
  training.predicted_tokens = read_predicted_tokens(section, model, training.sequence_length);
  training.target_samples = read_target_samples(section, model, training.sequence_length);
  training.precision = read_precision(section, model, device);
  training.gradient_precision = read_sent_precision(section, "gradient_precision", training.precision);
  training.activation_precision = read_sent_precision(section, "activation_precision", training.precision);
  training.optimizer = static_cast<Optimizer>(section.choice("optimizer", kOptimizerNames, 0));
  training.recompute = read_recompute(section, model);
  const AttentionChoice attention = read_attention(section, model, device, training.precision, framework);
  training.attention = attention.kernels;
  training.attention_reason = attention.reason;
  training.recompute_layers = read_recompute_layers(section, training.recompute);
  if (training.recompute_layers > 0 && training.recompute == Recompute::selective &&
      training.attention != AttentionKernels::unfused)
    section.refuse_inapplicable(
        "recompute_layers",
        fmt::format("{} with recompute = \"selective\" and fused attention", training.recompute_layers),
        "attention = \"unfused\", recompute = \"operators\" or \"full\", or no such key: fused attention "
        "keeps no scores to recompute");
  section.text("framework", "");  // it has already set the keys of [framework]
  training.fused_loss = section.boolean("fused_loss", false);
  training.cuda_graphs = section.boolean("cuda_graphs", false);
  training.blocking_launches = section.boolean("blocking_launches", false);
  return training;
}

int count_microbatches(const Training& training, const StrategyChoice& strategy, Section& section) {
  auto global_batch = static_cast<std::int64_t>(training.global_batch);
  auto micro_batch = static_cast<std::int64_t>(training.micro_batch);
  std::int64_t unit = micro_batch * strategy.data;
  if (global_batch % unit != 0) {
    std::int64_t below = global_batch / unit * unit;
    std::string neighbours =
        below > 0 ? fmt::format("{} or {}", below, below + unit) : fmt::format("{}", unit);
    section.refuse("global_batch", fmt::format("{}", global_batch),
                   fmt::format("a multiple of micro_batch {} x data {} = {}, such as {}", micro_batch,
                               strategy.data, unit, neighbours));
  }
  std::int64_t count = global_batch / unit;
  if (count > kMaxMicrobatches) {
    section.refuse("global_batch", fmt::format("{}, which is {} micro-batches a step", global_batch, count),
                   fmt::format("at most {} micro-batches a step", kMaxMicrobatches));
  }
  const StagePlace place{.stages = strategy.pipeline,
                         .microbatches = static_cast<int>(count),
                         .group = strategy.microbatch_group};
  if (const int group = place.group_size(); !fits_groups(order_of(strategy.schedule), place)) {
    const std::string name(kPipelineScheduleNames[static_cast<std::size_t>(strategy.schedule)]);
    section.refuse("global_batch", fmt::format("{}, which is {} micro-batches a step", global_batch, count),
                   group == strategy.pipeline
                       ? fmt::format("a multiple of pipeline, {} micro-batches, with schedule = \"{}\" (or a "
                                     "larger strategy.microbatch_group)",
                                     group, name)
                       : fmt::format("a multiple of microbatch_group, {}, or at least pipeline, {}, "
                                     "micro-batches more, with schedule = \"{}\"",
                                     group, strategy.pipeline, name));
  }
  const std::int64_t parts = std::int64_t{strategy.pipeline} * strategy.virtual_stages;
  if (count * parts > kMaxPasses) {
    section.refuse(
        "global_batch",
        fmt::format("{}, which gives {} micro-batches through {} stages", global_batch, count, parts),
        fmt::format("at most {} micro-batches through that many stages", kMaxPasses / parts));
  }
  return static_cast<int>(count);
}

void fit_recompute_layers(Section& section, const Scenario& scenario) {
  const int layers = scenario.training.recompute_layers;
  if (layers == 0) return;
  Scenario all = scenario;  // a scenario that can always be cut
  all.training.recompute_layers = 1;
  const int most = most_recompute_layers(scenario, cut_model(all).stage_layers);
  if (layers > most)
    section.refuse_inapplicable(
        "recompute_layers", fmt::format("{}", layers),
        fmt::format(
            "1 to {}, the layers that the largest stage can recompute, or no such key to recompute all",
            most),
        InapplicableKeyError::Ignored::if_changed);
}

}  // namespace rehearse
