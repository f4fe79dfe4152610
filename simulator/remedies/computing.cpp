#include <fmt/format.h>

#include <cmath>

#include "models/kernels.hpp"
#include "models/segment.hpp"
#include "simulator/remedies/remedy_kinds.hpp"
#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {
namespace {

// A forward pass is a third of the work without recomputation, and a quarter of that with all of it.
constexpr double kRecomputed = 0.25;
// Upper estimates of the share of the compute time that better kernels save.
constexpr double kByLargerProducts = 0.4, kByFusedAttention = 0.6, kByTensorCores = 0.9;

std::string assignment(const char* key, double value) {
  return fmt::format("{}={:.0f}", key, value);
}

bool can_halve(double number) {
  return number >= 2 && std::fmod(number, 2) == 0;
}

}  // namespace

void recompute_less(const Situation& now, Remedies& found) {
  const Training& training = now.scenario.training;
  if (training.recompute == Recompute::none) return;
  const double at_most_s = kRecomputed * now.compute_s();
  const auto add = [&](const char* what, const char* kind) {
    Remedy remedy{fmt::format("there is enough memory to recompute {}", what),
                  {fmt::format("training.recompute={}", kind)},
                  at_most_s};
    if (training.recompute_layers > 0) remedy.sets.emplace_back("training.recompute_layers=");
    found.push_back(std::move(remedy));
  };
  add("nothing", "none");
  if (training.recompute > Recompute::selective && training.attention == AttentionKernels::unfused)
    add("only the attention scores", "selective");
  const double layers = training.recompute_layers > 0
                            ? training.recompute_layers
                            : std::ceil(static_cast<double>(
                                  model_layers(now.scenario.model, pass_shape(now.scenario)).size() /
                                  (now.scenario.strategy.pipeline * now.scenario.strategy.virtual_stages)));
  double before = layers;
  for (const double share : {0.75, 0.5, 0.25}) {
    const double fewer = std::floor(share * layers);
    if (fewer < 1 || fewer >= before) continue;
    before = fewer;
    found.push_back({fmt::format("there is enough memory to recompute only {:.0f} {} of each stage", fewer,
                                 fewer == 1 ? "layer" : "layers"),
                     {assignment("training.recompute_layers", fewer)},
                     (1 - share) * at_most_s});
  }
}

void change_micro_batch(const Situation& now, Remedies& found) {
  const Training& training = now.scenario.training;
  if (is_profiled(now.scenario.model)) return;
  const double saved_s = kByLargerProducts * now.compute_s() + now.metrics.breakdown.launches_s +
                         now.waiting_s(Purpose::weights) + now.waiting_s(Purpose::tensor) / 2;
  for (const int times : {2, 4, 8}) {
    if (now.scenario.microbatches % times != 0) break;
    found.push_back({"larger micro-batches make larger kernels, and fewer",
                     {assignment("training.micro_batch", times * training.micro_batch)},
                     saved_s});
  }
  double size = training.micro_batch;
  for (int times = 2; times <= 4 && can_halve(size); times *= 2) {
    size /= 2;
    if (now.bubble_s() > 0)
      found.push_back({"smaller micro-batches leave a smaller bubble",
                       {assignment("training.micro_batch", size)},
                       now.bubble_s()});
  }
}

void fuse_attention(const Situation& now, Remedies& found) {
  const Scenario& s = now.scenario;
  if (!std::holds_alternative<Transformer>(s.model.shape)) return;
  const AttentionKernels best =
      default_attention(s.model, s.cluster->node().device, s.training.precision, Framework{}).kernels;
  if (best <= s.training.attention) return;
  found.push_back(
      {"the device has faster attention kernels",
       {fmt::format("training.attention={}", kAttentionKernelsNames[static_cast<std::size_t>(best)])},
       kByFusedAttention * now.compute_s()});
}

// The devices of the last stage compute the loss of all samples, and the others wait for them.
void fuse_loss(const Situation& now, Remedies& found) {
  const Scenario& s = now.scenario;
  const auto* t = std::get_if<Transformer>(&s.model.shape);
  if (t == nullptr || t->vocabulary <= 0 || s.training.fused_loss) return;
  const double fused = fused_loss_bytes(s.training.precision),
               moved = s.framework.loss_bytes.value > 0 ? s.framework.loss_bytes.value
                                                        : unfused_loss_bytes(s.training.precision);
  if (moved <= fused) return;
  const double logits = s.training.global_batch * tokens_per_sample(s.model, s.training.sequence_length) *
                        t->vocabulary / (s.strategy.data * s.strategy.context * s.strategy.tensor);
  const Device& device = s.cluster->node().device;
  found.push_back(
      {fmt::format("a fused loss moves {:.0f} bytes a logit instead of {:.0f}", fused, moved),
       {"training.fused_loss=true"},
       (moved - fused) * logits / (device.memory_bandwidth.value * device.memory_efficiency.value)});
}

void use_tensor_cores(const Situation& now, Remedies& found) {
  const Scenario& s = now.scenario;
  if (is_profiled(s.model) || stored_precision(s.training.precision) != Precision::fp32) return;
  const ByPrecision& peaks = s.cluster->node().device.peak_flops;
  const auto peak = [&](Precision p) { return peaks[static_cast<std::size_t>(p)].value; };
  for (const Precision precision : {Precision::bf16, Precision::fp16, Precision::tf32})
    if (precision != s.training.precision && peak(precision) > peak(s.training.precision))
      found.push_back({fmt::format("{} computes faster", name_of(precision)),
                       {fmt::format("training.precision={}", name_of(precision))},
                       kByTensorCores * now.metrics.step_time_s});
}

void launch_by_graphs(const Situation& now, Remedies& found) {
  if (now.scenario.training.cuda_graphs || now.metrics.breakdown.launches_s <= 0) return;
  found.push_back({"CUDA graphs launch kernels without the host's time",
                   {"training.cuda_graphs=true"},
                   now.metrics.breakdown.launches_s});
}

}  // namespace rehearse
