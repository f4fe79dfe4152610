#include "simulator/scenario/default_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "simulator/scenario/scenario.hpp"

namespace rehearse {
namespace {

using Kernels = AttentionKernels;

constexpr std::size_t kGenerations = kAttentionKernelsNames.size();  // index 0: the unfused kernels
// The widest heads, in elements, that each kind of kernels supports. FlashAttention: 128 (NVIDIA/Megatron-LM
// pull request 267 of December 2022); its successors: 256 (Dao-AILab/flash-attention
// csrc/flash_attn/flash_api.cpp). Heads whose size is not a multiple of 8 are padded
// (flash_attn/flash_attn_interface.py there).
constexpr std::array<double, kGenerations> kMostHeadDim = {0, 128, 256, 256};

std::string_view name_of(Kernels kernels) {
  return kAttentionKernelsNames[static_cast<std::size_t>(kernels)];
}

double widest_head(const Transformer& t) {
  const double queries = t.head_dim > 0 ? t.head_dim : t.hidden / t.heads;
  return std::max(queries, t.value_head_dim);
}

bool fits(Kernels fused, double head) {
  return head <= kMostHeadDim[static_cast<std::size_t>(fused)];
}

// Returns the newest fused kernels up to `wanted` that the device has, else the oldest newer ones; nullopt if
// there are none.
std::optional<Kernels> nearest(const Device& device, Kernels wanted, double head) {
  const auto last = static_cast<std::size_t>(wanted);
  const auto usable = [&](std::size_t i) {
    return device.has(static_cast<Kernels>(i)) && fits(static_cast<Kernels>(i), head);
  };
  for (std::size_t i = last; i > 0; --i)
    if (usable(i)) return static_cast<Kernels>(i);
  for (std::size_t i = last + 1; i < kGenerations; ++i)
    if (usable(i)) return static_cast<Kernels>(i);
  return std::nullopt;
}

bool has_fused(const Device& device) {
  for (std::size_t i = 1; i < kGenerations; ++i)
    if (device.has(static_cast<Kernels>(i))) return true;
  return false;
}

std::string fused_note(const Scenario& s) {
  const std::string_view name = name_of(s.training.attention);
  const Framework& framework = s.framework;
  const std::string& device = s.cluster->node().device.name;
  std::string reason;
  switch (s.training.attention_reason) {
    case AttentionReason::newest:
      reason = fmt::format(", the newest kernels that {} has", device);
      break;
    case AttentionReason::framework:
      reason = fmt::format(", as in {}", framework.title);
      break;
    case AttentionReason::nearest:
      reason = fmt::format(", the closest of the kernels of {} to {}, as in {}", device,
                           name_of(*framework.attention), framework.title);
      break;
    default:
      break;
  }
  if (!reason.empty()) reason += "; training.attention selects others";
  return fmt::format(
      "Attention is fused ({}{}): scores are neither stored nor moved{}.", name, reason,
      s.training.recompute == Recompute::selective ? ", and selective recomputation has nothing to do" : "");
}

std::string unfused_note(const Scenario& s) {
  const auto* transformer = std::get_if<Transformer>(&s.model.shape);
  const Device& device = s.cluster->node().device;
  switch (s.training.attention_reason) {
    case AttentionReason::framework: {
      const auto fused = nearest(device, Kernels::flash_3, widest_head(*transformer));
      return fmt::format("Attention is unfused, as in {}: its scores pass through memory{}.",
                         s.framework.title,
                         fused ? fmt::format("; training.attention = \"{}\" fuses it", name_of(*fused)) : "");
    }
    case AttentionReason::precision:
      return fmt::format(
          "Attention is unfused because no fused kernels compute in {}: its scores pass through memory.",
          rehearse::name_of(s.training.precision));
    case AttentionReason::heads: {
      const double head = widest_head(*transformer);
      const bool narrow = s.framework.attention && !fits(*s.framework.attention, head);
      return fmt::format(
          "Attention is unfused because heads of {} elements are too wide for {}: its scores pass through "
          "memory.",
          head,
          narrow ? fmt::format("{} of {}", name_of(*s.framework.attention), s.framework.title)
                 : fmt::format("the fused kernels that {} has", device.name));
    }
    default:
      return "";
  }
}

}  // namespace

AttentionChoice default_attention(const Model& model, const Device& device, Precision precision,
                                  const Framework& framework) {
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  if (!transformer || transformer->relative_positions > 0) return {Kernels::unfused, AttentionReason::given};
  if (!has_fused(device)) return {Kernels::unfused, AttentionReason::device};
  if (stored_precision(precision) == Precision::fp32) return {Kernels::unfused, AttentionReason::precision};
  const Kernels wanted = framework.attention.value_or(Kernels::flash_3);
  if (wanted == Kernels::unfused) return {wanted, AttentionReason::framework};
  const double head = widest_head(*transformer);
  if (!fits(wanted, head)) return {Kernels::unfused, AttentionReason::heads};
  const std::optional<Kernels> found = nearest(device, wanted, head);
  if (!found) return {Kernels::unfused, AttentionReason::heads};
  if (!framework.attention) return {*found, AttentionReason::newest};
  return {*found, *found == wanted ? AttentionReason::framework : AttentionReason::nearest};
}

std::string attention_note(const Scenario& scenario) {
  return scenario.training.attention == Kernels::unfused ? unfused_note(scenario) : fused_note(scenario);
}

}  // namespace rehearse
