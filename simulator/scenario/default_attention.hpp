// Which kernels compute attention where training.attention is not given, and the sentence that says so.
#pragma once

#include <cstdint>
#include <string>

#include "models/model.hpp"
#include "simulator/costs/framework.hpp"
#include "topologies/device.hpp"

namespace rehearse {

struct Scenario;

// What decided on the kernels of attention.
enum class AttentionReason : std::uint8_t {
  given,      // by training.attention, or the model has no attention
  newest,     // without a framework: the newest kernels that the device has
  framework,  // what the framework ran
  nearest,    // the device has no such kernels: of those that it has the nearest to the framework's
  device,     // the device has no fused kernels
  precision,  // there are no fused kernels for tensors stored in fp32
  heads,      // too wide for fused kernels
};

struct AttentionChoice {
  AttentionKernels kernels = AttentionKernels::unfused;
  AttentionReason reason = AttentionReason::given;
};

// The newest fused kernels that the device has and the model's heads fit. FlashAttention was published in May
// 2022, its second generation in July 2023, its third in July 2024 (Dao-AILab/flash-attention: 1fcbe6f,
// 4f285b3, 7f67966), so that a framework, which is dated, has the kernels that it names.
AttentionChoice default_attention(const Model& model, const Device& device, Precision precision,
                                  const Framework& framework);

// Which kernels a scenario computes attention with, and why; empty: unfused, and no others could be chosen or
// training.attention asks for it.
std::string attention_note(const Scenario& scenario);

}  // namespace rehearse
