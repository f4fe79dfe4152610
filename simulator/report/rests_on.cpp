// Lists the inputs on which an answer is based, and their quality.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "simulator/costs/compute.hpp"
#include "simulator/costs/gloo_constants.hpp"
#include "simulator/costs/host.hpp"
#include "simulator/report/cost_inputs.hpp"
#include "simulator/report/report.hpp"

namespace rehearse {
namespace {

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
  return all;
}

}  // namespace

std::string all_reduce_algorithms(const Schedule& schedule) {
  std::vector<std::string_view> names;
  for (const Program& program : schedule.programs)
    for (const Op& op : program.ops) {
      if (op.kind != OpKind::collective || op.collective.kind != CollectiveKind::all_reduce) continue;
      const std::string_view name = kAlgorithmNames[static_cast<std::size_t>(op.collective.algorithm)];
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<Input> rests_on(const Scenario& scenario, const Plan& plan) {
  std::set<Kernel::Kind> kinds;
  std::set<std::pair<AttentionKernels, bool>> fused;  // and whether backward
  bool optimizer = false;
  for (const Work& work : plan.schedule->works) {
    for (const Kernel& kernel : work.kernels) {
      kinds.insert(kernel.kind);
      if (kernel.kind == Kernel::Kind::fused_attention) fused.emplace(kernel.fused, kernel.backward);
    }
    optimizer = optimizer || work.parameters_updated > 0;
  }
  const auto uses = [&](Kernel::Kind kind) { return kinds.count(kind) > 0; };
  const Device& device = scenario.cluster->node().device;
  std::vector<Input> inputs;
  const auto constant = [&](bool used, const Sourced& number, const std::string& what) {
    if (used) inputs.push_back({Input::Group::compute, number.basis, what, device.name, number.source});
  };

  const bool products = uses(Kernel::Kind::gemm) || uses(Kernel::Kind::convolution) ||
                        uses(Kernel::Kind::attention) || !fused.empty();
  const auto precision_of = [&](Kernel::Kind kind) {
    return computed_in(device, kind, scenario.training.precision);
  };
  if (uses(Kernel::Kind::fixed)) {
    const auto* profiled = std::get_if<ProfiledModel>(&scenario.model.shape);
    // The scenario gives the times; the file's author says where they were measured.
    inputs.push_back({Input::Group::compute, Basis::measured,
                      profiled && profiled->has_layers ? "layer times" : "stage times", scenario.model.title,
                      joined(scenario.model.sources)});
  }
  std::set<Precision> peaks;
  for (const Kernel::Kind kind : {Kernel::Kind::gemm, Kernel::Kind::convolution, Kernel::Kind::attention,
                                  Kernel::Kind::fused_attention})
    if (uses(kind)) peaks.insert(precision_of(kind));
  for (const Precision precision : peaks)
    constant(true, device.peak_flops[static_cast<std::size_t>(precision)],
             fmt::format("{} peak", name_of(precision)));
  constant(uses(Kernel::Kind::gemm), device.gemm_efficiency_of(precision_of(Kernel::Kind::gemm)),
           "matrix product efficiency");
  constant(uses(Kernel::Kind::gemm) && device.compute_units > 0, device.gemm_prologue_k,
           "matrix product prologue");
  constant(uses(Kernel::Kind::convolution),
           device.convolution_efficiency_of(precision_of(Kernel::Kind::convolution)),
           "convolution efficiency");
  constant(uses(Kernel::Kind::attention), device.attention_efficiency, "attention efficiency");
  for (const auto& [kernels, backward] : fused) {
    const FusedAttentionShares& shares = device.fused_attention[static_cast<std::size_t>(kernels)];
    constant(true, backward ? shares.backward : shares.forward,
             fmt::format("{} {} efficiency", kAttentionKernelsNames[static_cast<std::size_t>(kernels)],
                         backward ? "backward" : "forward"));
  }
  constant(products || uses(Kernel::Kind::memory) || optimizer, device.memory_bandwidth, "memory bandwidth");
  constant(products || uses(Kernel::Kind::memory) || optimizer, device.memory_efficiency,
           "memory efficiency");
  constant(products || uses(Kernel::Kind::memory), device.kernel_overhead_s, "kernel overhead");
  constant(optimizer && device.optimizer_bytes_per_parameter.value > 0, device.optimizer_bytes_per_parameter,
           "optimizer traffic");
  constant(parameter_count(scenario.model) > 0, device.memory_bytes, "memory size");

  const Framework& framework = scenario.framework;
  const auto of_framework = [&](const Sourced& number, const std::string& what) {
    if (number.value > 0)
      inputs.push_back({Input::Group::compute, number.basis, what, framework.name, number.source});
  };
  of_framework(framework.kernel_launch_s, "kernel launch");
  of_framework(framework.collective_launch_s, "collective launch");
  of_framework(framework.step_s, "fixed time of a step");
  of_framework(framework.message_stall, "stalls beside messages");
  of_framework(framework.accumulation_bytes, "gradient accumulation traffic");
  if (!scenario.training.fused_loss) of_framework(framework.loss_bytes, "loss traffic");
  of_framework(framework.norm_bytes, "norm traffic");
  of_framework(framework.rotary_bytes, "rotary position traffic");
  of_framework(framework.gate_bytes, "activation function traffic");
  of_framework(framework.cast_bytes, "cast traffic");
  if (const auto* t = std::get_if<Transformer>(&scenario.model.shape); t && t->experts > 0) {
    of_framework(framework.expert_launch_s, "launch of an expert's product");
    of_framework(framework.routed_cast_bytes, "cast traffic of experts");
    if (t->biases) of_framework(framework.expert_bias_bytes, "bias traffic of experts");
  }
  if (const auto* t = std::get_if<Transformer>(&scenario.model.shape); t && t->attention_sinks)
    of_framework(framework.sink_bytes, "attention with sinks");
  if (scenario.strategy.offload.optimizer != OffloadTo::none)
    inputs.push_back(
        {Input::Group::compute, Basis::published, "host update efficiency", "CPU-Adam", kHostUpdateSource});

  if (scenario.data.given && scenario.data.core_s.value > 0)
    inputs.push_back({Input::Group::compute, scenario.data.core_s.basis, "preparation of samples",
                      scenario.data.preparation.empty() ? scenario.data.title : scenario.data.preparation,
                      scenario.data.core_s.source});

  inputs.push_back({Input::Group::network, scenario.cluster->network_basis, "network", scenario.cluster->name,
                    joined(scenario.cluster->sources)});
  if (scenario.engine.protocol.kind == Protocol::nccl) {
    const std::string algorithms = all_reduce_algorithms(*plan.schedule);
    inputs.push_back({Input::Group::protocol, Basis::published, "protocol costs", "NCCL 2.30.7",
                      "NVIDIA/nccl v2.30.7-1 src/graph/tuning.cc" +
                          (algorithms.empty() ? "" : ": " + algorithms + " all-reduce")});
  }
  if (scenario.engine.protocol.kind == Protocol::gloo)
    inputs.push_back({Input::Group::protocol, Basis::measured, "protocol costs", "Gloo", gloo::kSource});
  if (scenario.engine.protocol.over_tcp())
    inputs.push_back({Input::Group::protocol, Basis::published, "protocol costs", "TCP/IP on Ethernet",
                      "IEEE 802.3, RFC 791, RFC 9293, RFC 7323: headers of full frames"});
  if (scenario.engine.protocol.kind == Protocol::measured) {
    const LinkProfile& links = *scenario.engine.protocol.links;
    inputs.push_back({Input::Group::protocol, links.basis, "protocol costs", links.title,
                      fmt::format("{}, {}; {}{}{}", links.date, links.hardware, links.versions,
                                  links.command.empty() ? "" : "; ", links.command)});
  }
  for (Input& input : cost_inputs(scenario)) inputs.push_back(std::move(input));
  return inputs;
}

std::string in_short(const std::vector<Input>& inputs) {
  constexpr std::array<const char*, 3> groups = {"compute", "network", "protocol costs"};
  std::string text;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const Basis basis : {Basis::measured, Basis::published, Basis::interpolated}) {
      std::vector<const Input*> found;
      for (const Input& input : inputs) {
        if (static_cast<std::size_t>(input.group) == g && input.basis == basis) found.push_back(&input);
      }
      if (found.empty()) continue;
      text += fmt::format("{}{} {} ({}", text.empty() ? "" : ", ", groups[g],
                          kBasisNames[static_cast<std::size_t>(basis)], found.front()->of);
      if (found.size() > 1) text += fmt::format(", {} figures", found.size());
      text += ')';
    }
  }
  std::vector<std::string> guesses;
  for (const Input& input : inputs) {
    if (input.basis == Basis::guess && input.group != Input::Group::cost) guesses.push_back(input.name);
  }
  if (guesses.empty()) return text;
  constexpr std::size_t kNamed = 4;
  text += fmt::format("{}{} guess{} (", text.empty() ? "" : "; ", guesses.size(),
                      guesses.size() == 1 ? "" : "es");
  const std::size_t named = guesses.size() <= kNamed ? guesses.size() : kNamed - 1;
  for (std::size_t i = 0; i < named; ++i) text += (i == 0 ? "" : ", ") + guesses[i];
  if (named < guesses.size()) text += fmt::format(" and {} more", guesses.size() - named);
  return text + ")";
}

}  // namespace rehearse
