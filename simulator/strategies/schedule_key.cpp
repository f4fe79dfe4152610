#include "simulator/strategies/schedule_key.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "models/text/document.hpp"
#include "models/text/number_in.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/programs/model_cut.hpp"

namespace rehearse {
namespace {

// Keys of which strategies read at most whether they are above 0. Whatever else they follow from, such as the
// cut of a model into stages of equal time, is part of the key.
constexpr auto kRates = std::to_array<std::string_view>({
    "cluster.nic_gbps",
    "cluster.node.nvlink_gb_per_s",
    "cluster.node.device_latency_us",
    "cluster.node.pcie_gb_per_s",
    "cluster.node.pcie_efficiency",
    "cluster.node.inter_socket_gb_per_s",
    "cluster.node.nic_gbps",
    "cluster.node.nic_latency_us",
    "cluster.node.cpu_gb_per_s",
    "cluster.node.host_link_gb_per_s",
    "cluster.node.host_links_gb_per_s",
    "cluster.node.nvme_read_gb_per_s",
    "cluster.node.nvme_write_gb_per_s",
    "cluster.node.device.memory_gb_per_s.value",
    "cluster.node.device.memory_efficiency.value",
    "cluster.node.device.gemm_efficiency.value",
    "cluster.node.device.gemm_prologue_k.value",
    "cluster.node.device.attention_efficiency.value",
    "cluster.node.device.convolution_efficiency.value",
    "cluster.node.device.kernel_overhead_us.value",
    "cluster.fabric.link_gbps",
    "cluster.fabric.global_gbps",
    "cluster.fabric.latency_us",
    "framework.kernel_launch_us.value",
    "framework.collective_launch_us.value",
    "framework.step_ms.value",
    "simulation.frame_overhead_bytes",
});

bool is_rate(std::string_view key) {
  const bool factor = key.starts_with("cluster.slow[") && key.ends_with("].factor");
  return factor || std::find(kRates.begin(), kRates.end(), key) != kRates.end();
}

// Returns whether the strategy compares times: of algorithms, of replicas, or of workers that do not wait for
// each other. Horovod's fusion, by when gradients come, is known by its keys.
bool follows_from_rates(const Scenario& scenario) {
  const StrategyChoice& strategy = scenario.strategy;
  return strategy.all_reduce == Algorithm::automatic || strategy.batch_by == BatchBy::speed ||
         (strategy.gradients == "parameter-server" &&
          strategy.parameter_server.mode != ParameterServer::Mode::sync);
}

}  // namespace

std::string schedule_key(const Scenario& scenario) {
  if (scenario.text.empty() || follows_from_rates(scenario)) return "";
  std::string key = fmt::format("{} micro-batches\n", scenario.microbatches);
  for (const auto& [path, value] : Document::parse_text(scenario.text, scenario.name).values()) {
    if (path == "strategy.fusion_mb" || path == "strategy.cycle_ms") return "";
    if (path.starts_with("cost.")) continue;
    if (const auto number = number_in<double>(value); is_rate(path) && number)
      key += fmt::format("{} {}\n", path, *number > 0 ? "above 0" : "0");
    else
      key += fmt::format("{} = {}\n", path, value);
  }
  // What the reader chose where the file leaves it out.
  key += fmt::format("{} {} {} {}\n", scenario.framework.name, static_cast<int>(scenario.training.attention),
                     static_cast<int>(scenario.training.precision), degrees_text(scenario.strategy));
  const StrategyChoice& strategy = scenario.strategy;
  if (strategy.stage_layers.empty() && strategy.pipeline * strategy.virtual_stages > 1)
    key += fmt::format("{}\n", fmt::join(cut_model(scenario).stage_layers, " "));
  return key;
}

}  // namespace rehearse
