#include "simulator/commands/uncertain_constants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "models/kernels.hpp"
#include "simulator/costs/compute.hpp"
#include "simulator/costs/link_uncertainty.hpp"
#include "topologies/faster.hpp"

namespace rehearse {
namespace {

// A constant of a device, with access to it in any Device.
struct DeviceConstant {
  std::string key;
  std::function<Sourced&(Device&)> in;
  bool less_is_better = false;
};

std::vector<DeviceConstant> device_constants() {
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

bool changes_work(const Schedule& schedule, const Device& device, const Device& other) {
  return std::any_of(schedule.works.begin(), schedule.works.end(),
                     [&](const Work& work) { return work_time_s(work, device) != work_time_s(work, other); });
}

void add_device_constants(const Prediction& p, std::vector<UncertainConstant>& found) {
  const Device& device = p.scenario.cluster->node().device;
  for (const DeviceConstant& constant : device_constants()) {
    Device other = device;
    Sourced& number = constant.in(other);
    if (number.value <= 0 || number.deviation() <= 0) continue;
    const auto change = [constant](Scenario& scenario, double better) {
      Faster factors;
      factors.device = scenario.cluster->node().device;
      constant.in(*factors.device).value *= constant.less_is_better ? 1 / better : better;
      scenario.cluster = faster(scenario.cluster, factors);
    };
    number.value *= 2;
    if (changes_work(*p.plan.schedule, device, other))
      found.push_back(
          {fmt::format("{} {}", device.name, constant.key), number.basis, number.deviation(), change});
  }
}

void add_framework_constants(const Prediction& p, std::vector<UncertainConstant>& found) {
  const Framework& framework = p.scenario.framework;
  const auto add = [&](const char* key, const Sourced& number,
                       std::function<void(Scenario&, double)> change) {
    if (number.value > 0 && number.deviation() > 0)
      found.push_back(
          {fmt::format("{} {}", framework.name, key), number.basis, number.deviation(), std::move(change)});
  };
  add("kernel_launch_us", framework.kernel_launch_s,
      [](Scenario& s, double better) { s.engine.launches.kernel_s /= better; });
  add("collective_launch_us", framework.collective_launch_s,
      [](Scenario& s, double better) { s.engine.launches.collective_s /= better; });
  add("step_ms", framework.step_s, [](Scenario& s, double better) { s.engine.launches.step_s /= better; });
  using Bytes = Sourced Framework::*;
  for (const auto& [key, bytes] : std::initializer_list<std::pair<const char*, Bytes>>{
           {"accumulation_bytes_per_parameter", &Framework::accumulation_bytes},
           {"loss_bytes_per_logit", &Framework::loss_bytes},
           {"norm_bytes_per_element", &Framework::norm_bytes},
           {"rotary_bytes_per_element", &Framework::rotary_bytes},
           {"gate_bytes_per_element", &Framework::gate_bytes},
           {"cast_bytes_per_element", &Framework::cast_bytes}})
    add(key, framework.*bytes,
        [which = bytes](Scenario& s, double better) { (s.framework.*which).value /= better; });
}

// Tables of one GPU type imply 100 to 130 bytes a logit where the loss is unfused, single rows 15 to 180
// (Megatron-DeepSpeed on one A100 and on two: VIA-Research/vTrain data/ground_truth_single.csv).
constexpr double kLossDeviation = 0.3;

void add_loss_constant(const Prediction& p, std::vector<UncertainConstant>& found) {
  const auto& works = p.plan.schedule->works;
  const bool has_loss = std::any_of(works.begin(), works.end(), [](const Work& work) {
    return std::any_of(work.kernels.begin(), work.kernels.end(), [](const Kernel& k) { return k.loss; });
  });
  if (!has_loss || p.scenario.framework.loss_bytes.value > 0) return;
  found.push_back(
      {"bytes that the loss moves", Basis::published, kLossDeviation, [](Scenario& s, double better) {
         s.framework.loss_bytes.value = unfused_loss_bytes(s.training.precision) / better;
       }});
}

void add_link_constants(const Prediction& p, std::vector<UncertainConstant>& found) {
  const LinkUncertainty uncertainty = link_uncertainty(p.scenario.engine.protocol);
  const Cluster& cluster = *p.scenario.cluster;
  bool inside = false, between = false;
  for (const LinkUse& use : p.trace.link_use) (cluster.inside_node(use.link) ? inside : between) = true;
  const auto add = [&](const char* what, bool used, double deviation,
                       std::function<void(Scenario&, double)> change) {
    if (used && deviation > 0)
      found.push_back(
          {fmt::format("{} {}", cluster.name, what), uncertainty.basis, deviation, std::move(change)});
  };
  const auto with = [](Scenario& scenario, const Faster& factors) {
    scenario.cluster = faster(scenario.cluster, factors);
  };
  add("bandwidth inside nodes", inside, uncertainty.inside_node, [with](Scenario& s, double better) {
    Faster factors;
    factors.intra_node_links = better;
    with(s, factors);
  });
  add("bandwidth between nodes", between, uncertainty.between_nodes, [with](Scenario& s, double better) {
    Faster factors;
    factors.network_links = better;
    with(s, factors);
  });
  add("startup and latency", inside || between, uncertainty.latency,
      [](Scenario& s, double better) { s.engine.latency_factor /= better; });
  if (p.metrics.breakdown.slowed_s > 0)
    found.push_back({"what collectives take from computing", Basis::published, kInterferenceDeviation,
                     [](Scenario& s, double better) { s.engine.interference.scale /= better; }});
}

}  // namespace

std::vector<UncertainConstant> uncertain_constants(const Prediction& prediction) {
  std::vector<UncertainConstant> found;
  add_device_constants(prediction, found);
  add_framework_constants(prediction, found);
  add_loss_constant(prediction, found);
  add_link_constants(prediction, found);
  return found;
}

}  // namespace rehearse
