// Implements `rehearse list` and `rehearse show`: what is shipped or in a file of the user, and what follows
// from it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <ostream>
#include <utility>

#include "models/model.hpp"
#include "models/text/error.hpp"
#include "models/text/toml_text.hpp"
#include "simulator/commands/show/show.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/wrap.hpp"
#include "simulator/scenario/reading/open_scenario.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/orders/order.hpp"
#include "topologies/cluster.hpp"
#include "topologies/prices.hpp"
#include "topologies/read_node.hpp"
#include "topologies/topology_matrix.hpp"

namespace rehearse {
namespace {

struct StrategyText {
  std::string_view name, summary, more, keys;
};

// Returns the title in table `section` of a preset in FOLDER/presets.
std::string title_of(std::string_view folder, std::string_view section, const std::string& preset) {
  Document document = Document::parse_file(preset_path(folder, preset));
  return document.root().section(section).text("title");
}

std::string title_of_strategy(const std::string& preset) {
  return title_of("simulator/strategies", "strategy", preset);
}

std::string title_of_framework(const std::string& preset) {
  return title_of("simulator/frameworks", "framework", preset);
}

// What the input of a training run consists of: the folders of presets, and the keys that name them.
struct InputPart {
  const char* folder;
  const char* what;
  const char* table;    // of the scenario
  const char* section;  // of the table; empty: the table itself
  const char* key;
};
constexpr std::array<InputPart, 5> kInputParts = {
    {{"simulator/input/datasets", "dataset", "data", "", "dataset"},
     {"simulator/input/loaders", "loader", "data", "loader", "loader.preset"},
     {"simulator/input/preparations", "preparation", "data", "preparation", "preparation.preset"},
     {"simulator/input/storages", "storage", "data", "storage", "storage.preset"},
     {"simulator/input/checkpoints", "checkpoint", "checkpoint", "", "preset"}}};

std::string title_of_input(const InputPart& part, const std::string& preset) {
  Document document = Document::parse_file(preset_path(part.folder, preset));
  Section table = document.root().section(part.table);
  return fmt::format("{}: {}", part.what,
                     (*part.section ? table.section(part.section) : table).text("title"));
}

std::vector<StrategyText> strategies() {
  std::vector<StrategyText> all;
  for (const GradientStrategyEntry* entry : gradient_strategies())
    all.push_back({entry->name, entry->summary, entry->more, entry->keys});
  for (std::size_t i = 0; i < kPipelineScheduleNames.size(); ++i) {
    const OrderEntry& order = order_of(static_cast<PipelineSchedule>(i));
    all.push_back({kPipelineScheduleNames[i], order.summary, order.more, order.keys});
  }
  return all;
}

// Reads a cluster from the keys of [cluster]; files are named as on the command line.
std::shared_ptr<const Cluster> cluster_of(const std::string& keys) {
  Document document = Document::parse_text("[cluster]\n" + keys, "cluster");
  Section section = document.root().section("cluster");
  return read_cluster(section, "");
}

// Returns a preset with two nodes, so that there is a network between them.
std::shared_ptr<const Cluster> cluster_preset(const std::string& name) {
  return cluster_of(fmt::format("preset = {}\nnodes = 2\n", toml_string(name)));
}

void fact(std::ostream& out, std::string_view name, const std::string& value) {
  out << fmt::format("  {:<35} {}\n", name, value);
}

// Omits the source, which is in the file that is printed below.
void fact(std::ostream& out, std::string_view name, const Sourced& number, const std::string& value) {
  fact(out, name, fmt::format("{} ({})", value, kBasisNames[static_cast<std::size_t>(number.basis)]));
}

void watts(std::ostream& out, std::string_view name, const Sourced& number) {
  if (number.value > 0) fact(out, name, number, with_digits(number.value, 3) + " W");
}

std::string in_billions(double n) {
  if (n >= 999.5e6) return with_digits(n / 1e9, 3) + " billion";
  if (n >= 999.5e3) return with_digits(n / 1e6, 3) + " million";
  return with_digits(n, 3);
}

std::string number_of_parameters(const Model& model) {
  return in_billions(parameter_count(model));
}

// Of a model with parts that are left out, the number of all its parameters, as it is published.
void parameter_facts(const Model& model, std::ostream& out) {
  double all = parameter_count(model);
  for (const LeftOut& part : model.left_out) all += part.parameters;
  if (model.left_out.empty()) return fact(out, "parameters", number_of_parameters(model));
  const bool counted = all > parameter_count(model);
  fact(out, "parameters",
       counted ? fmt::format("{}, of which {} are simulated", in_billions(all), number_of_parameters(model))
               : number_of_parameters(model) + " are simulated");
  for (const LeftOut& part : model.left_out)
    fact(out, "not simulated",
         part.what + (part.parameters > 0 ? ": " + in_billions(part.parameters) : ", which is not counted"));
}

std::string with_unit(double value, const char* unit) {
  const std::string number = with_prefix(value);
  const bool prefixed = std::isalpha(static_cast<unsigned char>(number.back())) != 0;
  return number + (prefixed ? "" : " ") + unit;
}

// Returns a network card's speed as it is advertised: in bits, in one direction.
std::string nic_speed(const Node& node) {
  return fmt::format("{} x {}b/s", node.nics, with_prefix(node.nic_bandwidth * 8));
}

std::string devices_of(const Node& node) {
  return node.devices == 1 ? node.device.title : fmt::format("{} x {}", node.devices, node.device.title);
}

// Returns the precision that trainings usually use on the device.
Precision usual_precision(const Device& device) {
  for (const Precision p : {Precision::bf16, Precision::fp16}) {
    if (device.peak_flops[static_cast<std::size_t>(p)].value > 0) return p;
  }
  return Precision::fp32;
}

std::string usual_peak(const Device& device, int devices) {
  const Precision precision = usual_precision(device);
  return fmt::format("{}FLOP/s {}",
                     with_prefix(devices * device.peak_flops[static_cast<std::size_t>(precision)].value),
                     name_of(precision));
}

void model_facts(const Model& model, std::ostream& out) {
  const std::vector<LayerCost> layers = layer_costs(model, {});
  double saved = 0;
  for (const LayerCost& layer : layers) saved += layer.saved_bytes;
  parameter_facts(model, out);
  if (active_parameter_count(model) < parameter_count(model))
    fact(out, "active for a token", in_billions(active_parameter_count(model)));
  fact(out, "layers in a pipeline", fmt::format("{}", layers.size()));
  const double tokens = tokens_per_sample(model, 0);
  if (tokens > 1) fact(out, "tokens a sample", with_digits(tokens, 1));
  fact(out, "arithmetic a sample", with_unit(flops_per_sample(model, 0), "FLOP") + ", forward and backward");
  fact(out, "activations a sample", with_unit(saved, "B") + ", stored in bf16 for the backward pass");
}

void device_facts(const Device& device, std::ostream& out) {
  for (std::size_t p = 0; p < kPrecisionNames.size(); ++p) {
    const Sourced& peak = device.peak_flops[p];
    if (peak.value > 0) {
      fact(out, fmt::format("dense {} peak", kPrecisionNames[p]), peak, with_prefix(peak.value) + "FLOP/s");
    }
  }
  fact(out, "memory", device.memory_bytes, in_gibibytes(device.memory_bytes.value) + " GiB");
  fact(out, "memory bandwidth", device.memory_bandwidth, with_prefix(device.memory_bandwidth.value) + "B/s");
  const auto share = [&](const std::string& what, const Sourced& number, const char* of) {
    if (number.value > 0) fact(out, what, number, fmt::format("{} of {}", in_percent(number.value), of));
  };
  const auto shares = [&](const std::string& what, const Sourced& number, const ByPrecision& at) {
    share(what, number, "the peak");
    for (std::size_t p = 0; p < at.size(); ++p) {
      share(fmt::format("{} in {}", what, kPrecisionNames[p]), at[p], "that peak");
    }
  };
  shares("long matrix products reach", device.gemm_efficiency, device.gemm_efficiency_at);
  if (device.gemm_prologue_k.value > 0) {
    fact(out, "starting a product takes", device.gemm_prologue_k,
         fmt::format("as long as {} elements of k", device.gemm_prologue_k.value));
  }
  shares("convolutions reach", device.convolution_efficiency, device.convolution_efficiency_at);
  share("attention's products reach", device.attention_efficiency, "the peak");
  for (std::size_t i = 1; i < kAttentionKernelsNames.size(); ++i) {
    const FusedAttentionShares& shares_of_peak = device.fused_attention[i];
    share(fmt::format("{} reaches, forward", kAttentionKernelsNames[i]), shares_of_peak.forward, "the peak");
    share(fmt::format("{} reaches, backward", kAttentionKernelsNames[i]), shares_of_peak.backward,
          "the peak");
  }
  share("element-wise kernels reach", device.memory_efficiency, "the memory bandwidth");
  fact(out, "between two kernels", device.kernel_overhead_s,
       with_digits(device.kernel_overhead_s.value * 1e6, 2) + " us");
  if (device.optimizer_bytes_per_parameter.value > 0) {
    fact(out, "an Adam update moves", device.optimizer_bytes_per_parameter,
         fmt::format("{} B a parameter", device.optimizer_bytes_per_parameter.value));
  }
  watts(out, "power", device.power_w);
  watts(out, "idle power", device.idle_power_w);
}

void cluster_facts(const Cluster& cluster, std::ostream& out) {
  const Node& node = cluster.node();
  const Fabric& fabric = cluster.fabric();
  fact(out, "a node", fmt::format("{}; {}", devices_of(node), counted(node.cpu_cores, "processor core")));
  constexpr std::array<std::string_view, 4> ways = {"", "through NVSwitch", "over each NVLink of a mesh", ""};
  if (node.device_bandwidth > 0) {
    fact(out, "between its devices",
         fmt::format("{}B/s a direction {}", with_prefix(node.device_bandwidth),
                     ways[static_cast<std::size_t>(node.interconnect)]));
  } else if (node.pcie_bandwidth > 0 && node.devices > 1) {
    fact(out, "between its devices", with_prefix(node.pcie_bandwidth) + "B/s a direction over PCIe");
  }
  for (const Node::PcieSwitches& level : node.pcie_switches)
    fact(out, "PCIe switches",
         fmt::format("{} devices below each, {}B/s a direction up", level.devices,
                     with_prefix(level.bandwidth)));
  if (node.sockets > 1)
    fact(out, "sockets",
         fmt::format("{}, {}B/s a direction between two", node.sockets,
                     with_prefix(node.inter_socket_bandwidth)));
  if (node.host_link_bandwidth > 0) {
    const bool shared = node.host_links_bandwidth > 0;
    fact(out, "a device and its host",
         with_prefix(node.host_link_bandwidth) + "B/s a direction" +
             (shared ? fmt::format(", {}B/s for the entire node", with_prefix(node.host_links_bandwidth))
                     : ""));
  }
  if (node.cpu_memory_bandwidth > 0) {
    const std::string size =
        node.cpu_memory_bytes > 0 ? in_gibibytes(node.cpu_memory_bytes) + " GiB, " : std::string();
    fact(out, "memory of a node", fmt::format("{}{}B/s", size, with_prefix(node.cpu_memory_bandwidth)));
  }
  if (node.nvme_read_bandwidth > 0)
    fact(out, "NVMe of a node",
         fmt::format("{}B/s read, {}B/s written", with_prefix(node.nvme_read_bandwidth),
                     with_prefix(node.nvme_write_bandwidth)));
  fact(out, "network cards",
       fmt::format("{}, {}B/s a direction each", nic_speed(node), with_prefix(node.nic_bandwidth)));
  constexpr std::array<std::string_view, 8> kinds = {"one switch",
                                                     "leaf and spine switches",
                                                     "a graph of links",
                                                     "a fat tree",
                                                     "rail switches and spines",
                                                     "a ring of nodes",
                                                     "a torus of nodes",
                                                     "a dragonfly"};
  std::string kind(kinds[static_cast<std::size_t>(fabric.kind)]);
  if (fabric.kind == Fabric::Kind::leaf_spine || fabric.kind == Fabric::Kind::rail ||
      fabric.kind == Fabric::Kind::fat_tree) {
    kind += fabric.oversubscription > 1
                ? fmt::format(", {} to 1 oversubscribed", with_digits(fabric.oversubscription, 2))
                : ", not oversubscribed";
  }
  if (fabric.latency_s > 0) kind += fmt::format(", {} a hop", with_digits(fabric.latency_s * 1e6, 3) + " us");
  fact(out, "fabric", kind);
  fact(out, "its network is",
       std::string(cluster.network_basis == Basis::guess
                       ? "partly a guess"
                       : kBasisNames[static_cast<std::size_t>(cluster.network_basis)]));
  watts(out, "a node without devices and NICs", node.power.host);
  watts(out, "the same, idle", node.power.host_idle);
  watts(out, "a network card", node.power.nic);
  if (cluster.switch_ports() > 0) {
    watts(out, "a switch port", fabric.port_power.use);
    watts(out, "the same, idle", fabric.port_power.idle);
  }
  fact(out, "dense peak of a node", usual_peak(node.device, node.devices));
  fact(out, "device memory of a node", in_gibibytes(node.device.memory_bytes.value * node.devices) + " GiB");
}

void show_model(const std::string& name, const Model& model, std::ostream& out) {
  out << fmt::format("{}: a model, {}\n", name, model.title);
  model_facts(model, out);
}

void price_fact(const std::string& device, const std::string& cluster, std::ostream& out) {
  const PriceList list = shipped_prices();
  if (const Price* price = find_price(list, device, cluster))
    fact(out, "a device costs", price->per_device_hour,
         fmt::format("{} {} an hour", with_digits(price->per_device_hour.value, 3), list.currency));
}

void show_device(const std::string& name, const Device& device, std::ostream& out) {
  out << fmt::format("{}: a device, {}\n", name, device.title);
  device_facts(device, out);
  price_fact(device.name, "", out);
}

void show_cluster(const std::string& name, const Cluster& cluster, std::ostream& out) {
  out << fmt::format("{}: nodes of a cluster and the fabric between them\n", name);
  cluster_facts(cluster, out);
  price_fact(cluster.node().device.name, cluster.name, out);
}

void show_scenario(const std::string& path, std::ostream& out) {
  const Scenario scenario = read_scenario_file(path);
  const Device& device = scenario.cluster->node().device;
  out << fmt::format("{}: a scenario, {} on {}\n", path, scenario.model.title, scenario.cluster->title);
  out << "the model\n";
  model_facts(scenario.model, out);
  out << "the cluster\n";
  cluster_facts(*scenario.cluster, out);
  out << fmt::format("its device, {}\n", device.title);
  device_facts(device, out);
}

Model model_in(std::string_view key, const std::string& path) {
  Document document =
      Document::parse_text(fmt::format("[model]\n{} = {}\n", key, toml_string(path)), "model");
  Section section = document.root().section("model");
  return read_model(section, "");
}

enum class Described { model, cluster, device, scenario };
struct DescribingKey {
  std::string_view key;
  Described what;
};
// A file with this key at its top level describes the given thing. Scenarios come first, since they may
// contain all other keys.
constexpr std::array<DescribingKey, 10> kDescribing = {{{"model", Described::scenario},
                                                        {"cluster", Described::scenario},
                                                        {"training", Described::scenario},
                                                        {"node", Described::cluster},
                                                        {"peak_tflops", Described::device},
                                                        {"memory_gib", Described::device},
                                                        {"transformer", Described::model},
                                                        {"convolutional", Described::model},
                                                        {"multi_layer_perceptron", Described::model},
                                                        {"profiled", Described::model}}};

Described what_is(const Section& root) {
  for (const DescribingKey& one : kDescribing)
    if (root.has(one.key)) return one.what;
  throw InputError(root.place(),
                   "does not describe anything that can be shown; allowed: a model ([transformer], "
                   "[convolutional], [multi_layer_perceptron] or [profiled]), a cluster ([node]), a device "
                   "([peak_tflops]), a scenario ([model], [cluster]), or the config.json of a model");
}

// Shows what was understood of a job file, as a scenario that may lack what the file leaves open.
void show_job(const JobFile& job, std::ostream& out) {
  out << fmt::format("{}: {}\n", job.path, job.kind);
  for (const std::string& note : job.notes) out << wrapped("Note: " + note) << '\n';
  for (const JobQuestion& one : job.questions)
    out << wrapped(fmt::format("Open: {}, {} ({}).", one.key, one.why, one.options)) << '\n';
  out << "\nwhat is understood, as a scenario (`rehearse convert` writes it):\n\n"
      << job_scenario_text(job, job_document(job));
}

// Describes a user's file: a model, a cluster, a device, a scenario, a job file, or a Hugging Face
// config.json.
void describe_file(const std::string& path, std::ostream& out) {
  const std::string text = read_text_file(path, "TOML file");
  std::optional<Document> parsed;
  try {
    parsed = Document::parse_text(text, path);
  } catch (const InputError&) {
    const std::optional<JobFile> job = read_job(text, path);
    if (!job) throw;
    const auto model = std::find_if(job->keys.begin(), job->keys.end(),
                                    [](const JobKey& one) { return one.key == "model.huggingface"; });
    if (model != job->keys.end() && job->keys.size() == 1) {
      const Model shown = model_in("huggingface", path);
      show_model(path, shown, out);
      for (const std::string& note : shown.notes) out << "  Note: " << note << "\n";
      return;
    }
    return show_job(*job, out);
  }
  Document document = std::move(*parsed);
  if (is_job_document(document.tree()))
    if (const std::optional<JobFile> job = read_job(text, path)) return show_job(*job, out);
  Section root = document.root();
  switch (what_is(root)) {
    case Described::model:
      return show_model(path, model_in("file", path), out);
    case Described::cluster:
      return show_cluster(path,
                          *cluster_of(fmt::format("file = {}\n{}", toml_string(path),
                                                  root.has("nodes") ? "" : "nodes = 2\n")),
                          out);
    case Described::device:
      return show_device(path, read_device(root), out);
    case Described::scenario:
      return show_scenario(path, out);
  }
}

bool names_file(const std::string& name) {
  std::error_code ignored;
  return name.find('/') != std::string::npos || name.ends_with(".toml") || name.ends_with(".json") ||
         std::filesystem::is_regular_file(name, ignored);
}

// Writes the output of `nvidia-smi topo -m` as a cluster file, with what follows from it as comments.
void show_matrix(const std::string& path, const std::string& text, std::ostream& out) {
  const std::string file = cluster_file_of_matrix(text, path);
  Document document = Document::parse_text(file, path);
  Section root = document.root();
  Section section = root.section("node");
  const Node node = read_node(section, "");
  out << fmt::format("# {}: {}. Save this as a cluster file, and set the device.\n", path, devices_of(node));
  out << file;
}

void show_file(const std::string& path, std::ostream& out) {
  out << fmt::format("\n{}, with its sources:\n\n", std::filesystem::path(path).lexically_normal().string())
      << read_text_file(path, "preset");
}

}  // namespace

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const StrategyText& strategy : strategies()) names.emplace_back(strategy.name);
  return names;
}

void run_list(const std::string& what, std::ostream& out) {
  std::vector<std::pair<std::string, std::string>> rows;
  if (what == "models") {
    for (const std::string& name : preset_names("models")) {
      const Model model = model_preset(name);
      rows.emplace_back(name, fmt::format("{}, {} parameters", model.title, number_of_parameters(model)));
    }
  } else if (what == "clusters") {
    for (const std::string& name : preset_names("topologies")) {
      const auto cluster = cluster_preset(name);
      const Node& node = cluster->node();
      rows.emplace_back(name, fmt::format("a node: {}; network: {}", devices_of(node), nic_speed(node)));
    }
  } else if (what == "devices") {
    for (const std::string& name : device_names()) {
      const Device device = device_preset(name);
      rows.emplace_back(name, fmt::format("{}: {} GiB, {}", device.title,
                                          in_gibibytes(device.memory_bytes.value), usual_peak(device, 1)));
    }
  } else if (what == "frameworks") {
    for (const std::string& name : preset_names("simulator/frameworks"))
      rows.emplace_back(name, title_of_framework(name));
  } else if (what == "inputs") {
    for (const InputPart& part : kInputParts)
      for (const std::string& name : preset_names(part.folder))
        rows.emplace_back(name, title_of_input(part, name));
  } else {
    for (const StrategyText& strategy : strategies()) rows.emplace_back(strategy.name, strategy.summary);
    for (const std::string& name : preset_names("simulator/strategies"))
      rows.emplace_back(name, "preset: " + title_of_strategy(name));
  }
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  for (const auto& [name, title] : rows) out << fmt::format("{:<{}}  {}\n", name, width, title);
}

void run_show(const std::string& name, std::ostream& out) {
  if (const std::string path = preset_path("models", name); !path.empty()) {
    show_model(name, model_preset(name), out);
    show_file(path, out);
    return;
  }
  if (const std::string path = preset_path("topologies", name); !path.empty()) {
    show_cluster(name, *cluster_preset(name), out);
    show_file(path, out);
    return;
  }
  if (const std::string path = preset_path("topologies/devices", name); !path.empty()) {
    show_device(name, device_preset(name), out);
    show_file(path, out);
    return;
  }
  if (const std::string path = preset_path("simulator/strategies", name); !path.empty()) {
    out << fmt::format("{}: {}; [strategy] preset = \"{}\"\n", name, title_of_strategy(name), name);
    show_file(path, out);
    return;
  }
  if (const std::string path = preset_path("simulator/frameworks", name); !path.empty()) {
    out << fmt::format("{}: {}; [training] framework = \"{}\"\n", name, title_of_framework(name), name);
    show_file(path, out);
    return;
  }
  for (const InputPart& part : kInputParts)
    if (const std::string path = preset_path(part.folder, name); !path.empty()) {
      out << fmt::format("{}: {}; [{}] {} = \"{}\"\n", name, title_of_input(part, name), part.table, part.key,
                         name);
      show_file(path, out);
      return;
    }
  if (names_file(name)) {
    if (const std::string text = read_text_file(name, "file"); is_topology_matrix(text))
      return show_matrix(name, text, out);
    describe_file(name, out);
    show_file(name, out);
    return;
  }
  std::vector<std::string> known = preset_names("models");
  for (const auto& more : {preset_names("topologies"), device_names(), preset_names("simulator/strategies"),
                           preset_names("simulator/frameworks")})
    known.insert(known.end(), more.begin(), more.end());
  for (const InputPart& part : kInputParts)
    for (std::string& one : preset_names(part.folder)) known.push_back(std::move(one));
  for (const StrategyText& strategy : strategies()) {
    if (name == strategy.name) {
      out << fmt::format("{}: {}\n\n{}\n\n[strategy]\n{}", strategy.name, strategy.summary, strategy.more,
                         strategy.keys);
      return;
    }
    known.emplace_back(strategy.name);
  }
  const std::string near = nearest_name(name, known);
  throw InputError({name},
                   fmt::format("there is no preset with this name{}; allowed: a name from `rehearse "
                               "list models`, clusters, devices, strategies, frameworks or inputs, or a file",
                               near.empty() ? "" : fmt::format(", did you mean \"{}\"?", near)));
}

}  // namespace rehearse
