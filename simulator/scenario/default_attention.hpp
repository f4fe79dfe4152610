// Selects the kernels that compute attention if training.attention is not given, and the note that reports
// them.
#pragma once

#include <cstdint>
#include <string>

#include "models/model.hpp"
#include "simulator/costs/framework.hpp"
#include "topologies/device.hpp"

namespace rehearse {

struct Scenario;

// What determined the attention kernels.
enum class AttentionReason : std::uint8_t {
  given,      // by training.attention, or the model has no attention
  newest,     // without a framework: the newest kernels that the device has
  framework,  // the kernels that the framework used
  nearest,    // the device lacks these kernels: the ones it has that are nearest to the framework's
  device,     // the device has no fused kernels
  precision,  // there are no fused kernels for tensors stored in fp32
  heads,      // too wide for fused kernels
};

struct AttentionChoice {
  AttentionKernels kernels = AttentionKernels::unfused;
  AttentionReason reason = AttentionReason::given;
};

// Returns the newest fused kernels that the device has and that support the model's heads. FlashAttention was
// published in May 2022, its second generation in July 2023, its third in July 2024
// (Dao-AILab/flash-attention: 1fcbe6f, 4f285b3, 7f67966). A framework is dated, so it has the kernels that it
// names.
AttentionChoice default_attention(const Model& model, const Device& device, Precision precision,
                                  const Framework& framework);

// Returns a note on the kernels with which a scenario computes attention, and why. Empty if attention is
// unfused and either no other kernels could be chosen or training.attention asks for it.
std::string attention_note(const Scenario& scenario);

}  // namespace rehearse
