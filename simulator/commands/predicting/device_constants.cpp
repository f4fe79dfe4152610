#include "simulator/commands/predicting/device_constants.hpp"

#include <fmt/format.h>

namespace rehearse {
namespace {

std::vector<DeviceConstant> all_constants() {
  std::vector<DeviceConstant> all;
  const auto add = [&](const char* key, Sourced Device::*member, bool less_is_better) {
    all.push_back({key, [member](Device& d) -> Sourced& { return d.*member; }, less_is_better});
  };
  add("gemm_efficiency", &Device::gemm_efficiency, false);
  add("gemm_prologue_k", &Device::gemm_prologue_k, true);
  add("convolution_efficiency", &Device::convolution_efficiency, false);
  add("attention_efficiency", &Device::attention_efficiency, false);
  add("memory_efficiency", &Device::memory_efficiency, false);
  add("kernel_overhead_us", &Device::kernel_overhead_s, true);
  add("optimizer_bytes_per_parameter", &Device::optimizer_bytes_per_parameter, true);
  all.push_back({"tiles of products", [](Device& d) -> Sourced& { return d.products.small_tiles; }});
  all.push_back({"waves of tiles", [](Device& d) -> Sourced& { return d.products.wave_quantisation; }, true});
  const auto add_by_precision = [&](const char* key, ByPrecision Device::*member) {
    for (std::size_t p = 0; p < kPrecisionNames.size(); ++p)
      all.push_back({fmt::format("{}.{}", key, kPrecisionNames[p]),
                     [member, p](Device& d) -> Sourced& { return (d.*member)[p]; }});
  };
  add_by_precision("gemm_efficiency_at", &Device::gemm_efficiency_at);
  add_by_precision("convolution_efficiency_at", &Device::convolution_efficiency_at);
  for (std::size_t k = 1; k < kAttentionKernelsNames.size(); ++k) {
    const auto add_fused = [&](const char* pass, Sourced FusedAttentionShares::*member) {
      all.push_back({fmt::format("fused_attention.{}.{}", kAttentionKernelsNames[k], pass),
                     [member, k](Device& d) -> Sourced& { return d.fused_attention[k].*member; }});
    };
    add_fused("forward", &FusedAttentionShares::forward);
    add_fused("backward", &FusedAttentionShares::backward);
  }
  return all;
}

}  // namespace

bool DeviceConstant::uncertain(const Device& device) const {
  Device copy = device;
  const Sourced& number = in(copy);
  return number.value > 0 && number.deviation() > 0;
}

Device DeviceConstant::changed(Device device, double better) const {
  in(device).value *= less_is_better ? 1 / better : better;
  return device;
}

const std::vector<DeviceConstant>& device_constants() {
  static const std::vector<DeviceConstant> all = all_constants();
  return all;
}

}  // namespace rehearse
