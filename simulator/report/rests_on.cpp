// Which inputs an answer rests on: those that entered it, by how good they are.
#include <fmt/format.h>

#include <set>

#include "simulator/report/report.hpp"

namespace rehearse {
namespace {

void add(RestsOn& rests, Basis basis, const std::string& name, const std::string& source) {
  const std::string line = source.empty() ? name : name + ": " + source;
  (basis == Basis::measured    ? rests.measured
   : basis == Basis::published ? rests.published
                               : rests.guessed)
      .push_back(line);
}

}  // namespace

RestsOn rests_on(const Scenario& scenario, const Plan& plan) {
  std::set<Kernel::Kind> kinds;
  bool optimizer = false;
  for (const Work& work : plan.schedule->works) {
    for (const Kernel& kernel : work.kernels) kinds.insert(kernel.kind);
    optimizer = optimizer || work.parameters_updated > 0;
  }
  const auto uses = [&](Kernel::Kind kind) { return kinds.count(kind) > 0; };
  const Device& device = scenario.cluster->node().device;
  RestsOn rests;
  const auto constant = [&](bool used, const Sourced& number, const std::string& what) {
    if (used) add(rests, number.basis, fmt::format("{} of {}", what, device.name), number.source);
  };

  const bool products =
      uses(Kernel::Kind::gemm) || uses(Kernel::Kind::convolution) || uses(Kernel::Kind::attention);
  const Precision precision = scenario.training.precision;
  if (uses(Kernel::Kind::fixed)) {
    // The scenario gives the times; the file's author says where they were taken.
    std::string source;
    for (const std::string& s : scenario.model.sources) source += (source.empty() ? "" : "; ") + s;
    add(rests, Basis::measured, fmt::format("stage times of {}", scenario.model.title), source);
  }
  constant(products, device.peak_flops[static_cast<std::size_t>(precision)],
           fmt::format("{} peak", name_of(precision)));
  constant(uses(Kernel::Kind::gemm), device.gemm_efficiency, "matrix product efficiency");
  constant(uses(Kernel::Kind::gemm), device.gemm_prologue_k, "matrix product prologue");
  constant(uses(Kernel::Kind::convolution), device.convolution_efficiency, "convolution efficiency");
  constant(uses(Kernel::Kind::attention), device.attention_efficiency, "attention efficiency");
  constant(uses(Kernel::Kind::memory) || optimizer, device.memory_bandwidth, "memory bandwidth");
  constant(uses(Kernel::Kind::memory) || optimizer, device.memory_efficiency, "memory efficiency");
  constant(products || uses(Kernel::Kind::memory), device.kernel_overhead_s, "kernel overhead");
  constant(optimizer && device.optimizer_bytes_per_parameter.value > 0, device.optimizer_bytes_per_parameter,
           "optimizer traffic");
  constant(true, device.memory_bytes, "memory size");

  std::string sources;
  for (const std::string& s : scenario.cluster->sources) sources += (sources.empty() ? "" : "; ") + s;
  add(rests, scenario.cluster->network_basis, fmt::format("network of {}", scenario.cluster->name), sources);
  if (scenario.engine.protocol == Protocol::nccl) {
    add(rests, Basis::published, "protocol costs", "NCCL 2.30.7 src/graph/tuning.cc");
  }
  return rests;
}

}  // namespace rehearse
