// list and show: what is shipped, and what follows from it.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <ostream>
#include <utility>

#include "models/base/error.hpp"
#include "models/model.hpp"
#include "simulator/commands/commands.hpp"
#include "simulator/report/format.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {
namespace {

struct StrategyText {
  std::string_view name, keys, summary;
};

// What the keys of [strategy] choose between; the schedules' authors stand in simulator/strategies/.
constexpr std::array<StrategyText, 4> kStrategies = {{
    {"all-reduce", "strategy.gradients = \"all-reduce\", strategy.data = N",
     "every rank trains its share of the batch; gradients are summed by ring all-reduce in buckets of "
     "strategy.bucket_mb, behind the backward pass if strategy.overlap"},
    {"parameter-server",
     "strategy.gradients = \"parameter-server\", strategy.data = N, "
     "strategy.parameter_server.servers = K, strategy.parameter_server.placement",
     "workers push gradients to K servers, which update their shard of the weights and send them back for "
     "the next "
     "forward pass"},
    {"gpipe", "strategy.schedule = \"gpipe\", strategy.pipeline = P",
     "the layers are cut into P stages; all micro-batches go forward, then all go backward"},
    {"1f1b", "strategy.schedule = \"1f1b\", strategy.pipeline = P",
     "the layers are cut into P stages; after a short warm-up every stage alternates one forward and one "
     "backward, so "
     "that at most P micro-batches are kept"},
}};

std::shared_ptr<const Cluster> cluster_preset(const std::string& name, int nodes) {
  Document document =
      Document::parse_text(fmt::format("[cluster]\npreset = \"{}\"\nnodes = {}\n", name, nodes), name);
  Section root = document.root();
  Section section = root.section("cluster");
  return read_cluster(section, ".");
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw RunError(path + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void fact(std::ostream& out, std::string_view name, const std::string& value) {
  out << fmt::format("  {:<28} {}\n", name, value);
}

void fact(std::ostream& out, std::string_view name, const Sourced& number, const std::string& value) {
  fact(out, name,
       fmt::format("{} ({}{}{})", value, kBasisNames[static_cast<std::size_t>(number.basis)],
                   number.source.empty() ? "" : ": ", number.source));
}

void show_model(const std::string& name, std::ostream& out) {
  const Model model = model_preset(name);
  const std::vector<LayerCost> layers = layer_costs(model, {});
  double saved = 0;
  for (const LayerCost& layer : layers) saved += layer.saved_bytes;
  out << "\nWhat follows from it\n";
  fact(out, "title", model.title);
  fact(out, "parameters", with_prefix(parameter_count(model)));
  fact(out, "layers as simulated", fmt::format("{}", layers.size()));
  const double tokens = tokens_per_sample(model, 0);
  if (tokens > 1) fact(out, "tokens a sample", with_digits(tokens, 1));
  fact(out, "FLOPs a sample", with_prefix(flops_per_sample(model, 0)) + " (forward and backward)");
  fact(out, "activations a sample", in_gibibytes(saved) + " GiB (bf16, micro-batch 1, nothing recomputed)");
  for (const std::string& source : model.sources) fact(out, "source", source);
}

void show_device(const std::string& name, std::ostream& out) {
  const Device device = device_preset(name);
  out << "\nWhat follows from it\n";
  fact(out, "title", device.title);
  for (std::size_t p = 0; p < kPrecisionNames.size(); ++p) {
    const Sourced& peak = device.peak_flops[p];
    if (peak.value > 0) {
      fact(out, fmt::format("dense {} peak", kPrecisionNames[p]), peak, with_prefix(peak.value) + "FLOP/s");
    }
  }
  fact(out, "memory", device.memory_bytes, in_gibibytes(device.memory_bytes.value) + " GiB");
  fact(out, "memory bandwidth", device.memory_bandwidth, with_prefix(device.memory_bandwidth.value) + "B/s");
  const auto constant = [&](std::string_view what, const Sourced& number) {
    if (number.value > 0) fact(out, what, number, fmt::format("{}", number.value));
  };
  constant("matrix product efficiency", device.gemm_efficiency);
  constant("matrix product prologue", device.gemm_prologue_k);
  constant("convolution efficiency", device.convolution_efficiency);
  constant("attention efficiency", device.attention_efficiency);
  constant("memory efficiency", device.memory_efficiency);
  constant("kernel overhead, seconds", device.kernel_overhead_s);
  constant("optimizer bytes a parameter", device.optimizer_bytes_per_parameter);
}

void show_cluster(const std::string& name, std::ostream& out) {
  const auto cluster = cluster_preset(name, 2);
  const Node& node = cluster->node();
  out << "\nWhat follows from it\n";
  fact(out, "devices a node", fmt::format("{} x {}", node.devices, node.device.title));
  if (node.device_bandwidth > 0) {
    fact(out, "device to device", with_prefix(node.device_bandwidth) + "B/s a direction and link");
  }
  fact(out, "network cards a node",
       fmt::format("{} x {}B/s a direction", node.nics, with_prefix(node.nic_bandwidth)));
  constexpr std::array<std::string_view, 3> kinds = {"one switch", "leaf and spine", "a graph of links"};
  fact(out, "fabric", std::string(kinds[static_cast<std::size_t>(cluster->fabric().kind)]));
  const double peak = node.device.peak_flops[static_cast<std::size_t>(Precision::bf16)].value;
  if (peak > 0) fact(out, "dense bf16 peak of a node", with_prefix(peak * node.devices) + "FLOP/s");
  fact(out, "device memory of a node", in_gibibytes(node.device.memory_bytes.value * node.devices) + " GiB");
  for (const std::string& source : cluster->sources) fact(out, "source", source);
}

}  // namespace

void run_list(const std::string& what, std::ostream& out) {
  std::vector<std::pair<std::string, std::string>> rows;
  if (what == "models") {
    for (const std::string& name : preset_names("models")) {
      const Model model = model_preset(name);
      rows.emplace_back(name,
                        fmt::format("{}, {} parameters", model.title, with_prefix(parameter_count(model))));
    }
  } else if (what == "clusters") {
    for (const std::string& name : preset_names("topologies")) {
      const auto cluster = cluster_preset(name, 2);
      const Node& node = cluster->node();
      rows.emplace_back(name, fmt::format("nodes of {} x {}, {} x {}B/s network", node.devices,
                                          node.device.title, node.nics, with_prefix(node.nic_bandwidth)));
    }
  } else if (what == "devices") {
    for (const std::string& name : device_names()) rows.emplace_back(name, device_preset(name).title);
  } else {
    for (const StrategyText& strategy : kStrategies) rows.emplace_back(strategy.name, strategy.summary);
  }
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  for (const auto& [name, title] : rows) out << fmt::format("{:<{}}  {}\n", name, width, title);
}

void run_show(const std::string& name, std::ostream& out) {
  if (const std::string path = preset_path("models", name); !path.empty()) {
    out << file_text(path);
    show_model(name, out);
    return;
  }
  if (const std::string path = preset_path("topologies", name); !path.empty()) {
    out << file_text(path);
    show_cluster(name, out);
    return;
  }
  if (const std::string path = preset_path("topologies/devices", name); !path.empty()) {
    out << file_text(path);
    show_device(name, out);
    return;
  }
  std::vector<std::string> known = preset_names("models");
  for (const auto& more : {preset_names("topologies"), device_names()})
    known.insert(known.end(), more.begin(), more.end());
  for (const StrategyText& strategy : kStrategies) {
    if (name == strategy.name) {
      out << strategy.name << "\n  " << strategy.summary << "\n  " << strategy.keys << '\n';
      return;
    }
    known.emplace_back(strategy.name);
  }
  const std::string near = nearest_name(name, known);
  throw InputError({name},
                   fmt::format("there is no preset of this name{}; allowed: what `rehearse list models`, "
                               "clusters, devices and strategies name",
                               near.empty() ? "" : fmt::format(", did you mean \"{}\"?", near)));
}

}  // namespace rehearse
