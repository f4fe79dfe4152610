#include "simulator/commands/predicting/uncertain_constants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <variant>

#include "models/kernels.hpp"
#include "simulator/commands/predicting/device_constants.hpp"
#include "simulator/commands/predicting/fitting_framework.hpp"
#include "simulator/commands/predicting/link_constants.hpp"
#include "simulator/costs/compute.hpp"
#include "topologies/faster.hpp"

namespace rehearse {
namespace {

bool changes_work(const std::vector<Work>& works, const Device& device, const Device& other) {
  return std::any_of(works.begin(), works.end(),
                     [&](const Work& work) { return work_time_s(work, device) != work_time_s(work, other); });
}

void add_device_constants(const UncertainInputs& p, std::vector<UncertainConstant>& found) {
  const Device& device = p.scenario.cluster->node().device;
  for (const DeviceConstant& constant : device_constants()) {
    if (!constant.uncertain(device) || !changes_work(p.works, device, constant.changed(device, 2))) continue;
    Device copy = device;
    const Sourced& number = constant.in(copy);
    const auto change = [&constant](Scenario& scenario, double better) {
      Faster factors;
      factors.device = constant.changed(scenario.cluster->node().device, better);
      scenario.cluster = faster(scenario.cluster, factors);
    };
    found.push_back(
        {fmt::format("{} {}", device.name, constant.key), number.basis, number.deviation(), change});
  }
}

void add_framework_constants(const UncertainInputs& p, std::vector<UncertainConstant>& found) {
  const Framework& framework = p.scenario.framework;
  const auto add = [&](const char* key, const Sourced& number,
                       std::function<void(Scenario&, double)> change) {
    if (number.value > 0 && number.deviation() > 0)
      found.push_back(
          {fmt::format("{} {}", framework.name, key), number.basis, number.deviation(), std::move(change)});
  };
  add("kernel_launch_us", framework.kernel_launch_s, [](Scenario& s, double better) {
    s.engine.launches.kernel_s /= better;
    s.engine.launches.routed_kernel_s /= better;
  });
  add("expert_launch_us", framework.expert_launch_s,
      [](Scenario& s, double better) { s.engine.launches.expert_product_s /= better; });
  add("collective_launch_us", framework.collective_launch_s,
      [](Scenario& s, double better) { s.engine.launches.collective_s /= better; });
  add("step_ms", framework.step_s, [](Scenario& s, double better) { s.engine.launches.step_s /= better; });
  add("message_stall_share", framework.message_stall,
      [](Scenario& s, double better) { s.engine.launches.message_stall /= better; });
  using Bytes = Sourced Framework::*;
  for (const auto& [key, bytes] : std::initializer_list<std::pair<const char*, Bytes>>{
           {"accumulation_bytes_per_parameter", &Framework::accumulation_bytes},
           {"loss_bytes_per_logit", &Framework::loss_bytes},
           {"norm_bytes_per_element", &Framework::norm_bytes},
           {"rotary_bytes_per_element", &Framework::rotary_bytes},
           {"gate_bytes_per_element", &Framework::gate_bytes},
           {"cast_bytes_per_element", &Framework::cast_bytes},
           {"routed_cast_bytes_per_element", &Framework::routed_cast_bytes},
           {"expert_bias_bytes_per_element", &Framework::expert_bias_bytes},
           {"sink_bytes_per_score", &Framework::sink_bytes}})
    add(key, framework.*bytes,
        [which = bytes](Scenario& s, double better) { (s.framework.*which).value /= better; });
}

// Means of the framework presets that state what launches take, of those on GPUs before H100 and from H100
// on. A framework's process takes some time, so that a prediction without any can only be too fast by it.
struct UsualLaunches {
  double kernel_s, collective_s, step_s;
};
constexpr UsualLaunches kBeforeHopper = {48e-6, 45e-6, 13e-3}, kSinceHopper = {80e-6, 200e-6, 50e-3};
constexpr int kHopper = 90;

void add_unnamed_framework(const Scenario& scenario, std::vector<UncertainConstant>& found) {
  const bool on_gpus = scenario.cluster->node().device.compute_capability > 0;
  if (has_framework(scenario) || !on_gpus || scenario.engine.protocol.kind != Protocol::nccl ||
      !std::holds_alternative<Transformer>(scenario.model.shape))
    return;
  found.push_back(
      {"launches of a framework, as none is named", Basis::guess, 1, [](Scenario& s, double better) {
         if (better >= 1) return;
         const UsualLaunches& usual =
             s.cluster->node().device.compute_capability < kHopper ? kBeforeHopper : kSinceHopper;
         HostLaunches& launches = s.engine.launches;
         if (!s.training.cuda_graphs) launches.kernel_s = usual.kernel_s;
         launches.collective_s = usual.collective_s;
         launches.step_s = usual.step_s;
       }});
}

// Where the loss is unfused, tables of one GPU type imply 100 to 130 bytes per logit, and single rows 15 to
// 180 (Megatron-DeepSpeed on one A100 and on two: VIA-Research/vTrain data/ground_truth_single.csv).
constexpr double kLossDeviation = 0.3;

void add_loss_constant(const UncertainInputs& p, std::vector<UncertainConstant>& found) {
  const auto& works = p.works;
  const bool has_loss = std::any_of(works.begin(), works.end(), [](const Work& work) {
    return std::any_of(work.kernels.begin(), work.kernels.end(), [](const Kernel& k) { return k.loss; });
  });
  if (!has_loss || p.scenario.framework.loss_bytes.value > 0 || p.scenario.training.fused_loss) return;
  found.push_back(
      {"bytes that the loss moves", Basis::published, kLossDeviation, [](Scenario& s, double better) {
         s.framework.loss_bytes.value = unfused_loss_bytes(s.training.precision) / better;
       }});
}

// The times of a profile are means over micro-batches and stages, but the slowest determines the pace.
// Predictions of every other row of zero-bubble-1f1b, from the profiles that its source prints, have errors
// of 5.0 % (root mean square), which include kDeviationOfRuns.
constexpr double kProfileDeviation = 0.04;

void add_profile_constant(const UncertainInputs& p, std::vector<UncertainConstant>& found) {
  if (!is_profiled(p.scenario.model)) return;
  found.push_back({"profiled times", Basis::measured, kProfileDeviation, [](Scenario& s, double better) {
                     auto& profile = std::get<ProfiledModel>(s.model.shape);
                     for (std::vector<double>* times_s :
                          {&profile.forward_s, &profile.backward_input_s, &profile.backward_weight_s})
                       for (double& time_s : *times_s) time_s /= better;
                   }});
}

void add_link_constants(const UncertainInputs& p, std::vector<UncertainConstant>& found) {
  const Cluster& cluster = *p.scenario.cluster;
  const bool inside = p.inside_nodes, between = p.between_nodes;
  for (const LinkConstant& constant : link_constants(cluster, p.scenario.engine.protocol)) {
    if (!(constant.inside_nodes && inside) && !(constant.between_nodes && between)) continue;
    found.push_back(
        {constant.name, constant.basis, constant.deviation,
         [change = constant.change](Scenario& s, double better) { change(s.cluster, s.engine, better); }});
  }
  if (p.slowed)
    found.push_back({"slowing of computation by collectives", Basis::published, kInterferenceDeviation,
                     [](Scenario& s, double better) { s.engine.interference.scale /= better; }});
}

}  // namespace

std::vector<UncertainConstant> uncertain_constants(const UncertainInputs& inputs) {
  std::vector<UncertainConstant> found;
  add_device_constants(inputs, found);
  add_framework_constants(inputs, found);
  add_loss_constant(inputs, found);
  add_profile_constant(inputs, found);
  add_link_constants(inputs, found);
  return found;
}

std::vector<UncertainConstant> uncertain_constants(const Prediction& p) {
  UncertainInputs inputs{p.scenario, p.plan.schedule->works, false, false, p.metrics.breakdown.slowed_s > 0};
  for (const LinkUse& use : p.trace.link_use)
    (p.scenario.cluster->inside_node(use.link) ? inputs.inside_nodes : inputs.between_nodes) = true;
  std::vector<UncertainConstant> found = uncertain_constants(inputs);
  add_unnamed_framework(p.scenario, found);
  return found;
}

}  // namespace rehearse
