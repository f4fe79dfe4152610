// Checks what a scenario can change of a cluster's preset or file, key by key.
#include <filesystem>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/preset_keys.hpp"
#include "tests/topologies_cases.hpp"

using namespace rehearse;

namespace {

std::shared_ptr<const Cluster> changed(const std::string& text, const std::vector<std::string>& assignments,
                                       const std::string& folder = "") {
  Document document = Document::parse_text(text, "lab.toml");
  for (const std::string& assignment : assignments) document.set(assignment);
  Section section = document.root().section("cluster");
  return read_cluster(section, folder);
}

std::string refusal(const std::string& text, const std::vector<std::string>& assignments) {
  try {
    changed(text, assignments);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string described(const Sourced& number) {
  return std::to_string(number.value) + ' ' + std::to_string(static_cast<int>(number.basis)) + ' ' +
         number.source + '\n';
}

std::string described(const Device& d) {
  std::string text = d.name + ' ' + d.title + ' ' + std::to_string(d.compute_units) + ' ' +
                     std::to_string(d.compute_capability) + '\n';
  for (const Sourced* number : {&d.memory_bytes, &d.memory_bandwidth, &d.gemm_efficiency, &d.gemm_prologue_k,
                                &d.convolution_efficiency, &d.attention_efficiency, &d.memory_efficiency,
                                &d.kernel_overhead_s, &d.optimizer_bytes_per_parameter})
    text += described(*number);
  for (const auto* numbers : {&d.peak_flops, &d.gemm_efficiency_at, &d.convolution_efficiency_at})
    for (const Sourced& number : *numbers) text += described(number);
  return text;
}

// Returns everything that a result can depend on: every link, the rings, the processors, the device.
std::string described(const Cluster& c) {
  std::string text =
      c.name + c.changes + '\n' + c.title + '\n' + described(c.node().device) +
      std::to_string(c.node().cpu_cores) + ' ' + std::to_string(c.node().cpu_memory_bandwidth) + ' ' +
      std::to_string(static_cast<int>(c.network_basis)) + ' ' +
      std::to_string(static_cast<int>(c.fabric().routing)) + (c.fabric().sharp ? " sharp" : "") + '\n';
  for (const std::string& source : c.sources) text += source + '\n';
  for (LinkId l = 0; l < c.links(); ++l)
    text += c.link_name(l) + ' ' + std::to_string(c.bandwidth(l)) + ' ' +
            std::to_string(c.latency_s(l) * 1e9) + '\n';
  for (const auto& order : c.node().rings)
    for (const int device : order) text += std::to_string(device) + ' ';
  return text;
}

const std::string kDgx = "[cluster]\npreset = \"dgx-a100\"\nnodes = 4\n";

}  // namespace

TEST_CASE("each key of each cluster preset may stand in the scenario, and its own value changes nothing",
          "[release]") {
  int keys = 0;
  for (const std::string& name : cluster_names()) {
    const std::string text = "[cluster]\npreset = \"" + name + "\"\n";
    const std::string plain = described(*changed(text, {}));
    for (const auto& [key, value] : test::preset_keys("topologies", name)) {
      CAPTURE(name, key, value);
      ++keys;
      CHECK(described(*changed(text, {"cluster." + key + "=" + value})) == plain);
    }
  }
  CHECK(keys > 150);
}

TEST_CASE("each constant of each device preset may stand in the scenario, and its own value changes nothing",
          "[release]") {
  const std::string rest = "devices = 8\ninterconnect = \"nvswitch\"\nnvlink_gb_per_s = 1\n";
  for (const std::string& name : device_names()) {
    const std::string text = "[cluster.node]\n" + rest + "[cluster.node.device]\npreset = \"" + name + "\"\n";
    const std::string plain = described(device_preset(name));
    CHECK(described(changed(text, {})->node().device) == plain);
    for (const auto& [key, value] : test::preset_keys("topologies/devices", name)) {
      CAPTURE(name, key, value);
      CHECK(described(changed(text, {"cluster.node.device." + key + "=" + value})->node().device) == plain);
    }
  }
}

TEST_CASE("a scenario changes the node and the fabric of the cluster that it names") {
  struct Case {
    const char* preset;
    std::vector<std::string> assignments;
    const char* title;
    std::function<double(const Cluster&)> figure;
    double expected;
    Basis basis;
  };
  const auto device_bandwidth = [](const Cluster& c) { return c.node().device_bandwidth / 1e9; };
  const auto nic = [](const Cluster& c) { return c.node().nic_bandwidth * 8e-9; };
  const auto devices = [](const Cluster& c) { return static_cast<double>(c.devices()); };
  const std::vector<Case> cases = {
      {"dgx-a100",
       {"node.nvlink_gb_per_s=450"},
       "2 x dgx-a100, but for nvlink_gb_per_s (16 GPUs)",
       device_bandwidth,
       450,
       Basis::guess},
      {"dgx-a100",
       {"node.device=h100"},
       "2 x dgx-a100, but for device (16 GPUs)",
       [](const Cluster& c) { return c.node().device.peak_flops[3].value / 1e12; },
       989.5,
       Basis::published},
      {"dgx-a100",
       {"node.cpu_cores=64"},
       "2 x dgx-a100, but for cpu_cores (16 GPUs)",
       [](const Cluster& c) { return static_cast<double>(c.node().cpu_cores); },
       64,
       Basis::published},
      {"dgx-a100", {"node.devices=4"}, "2 x dgx-a100, but for devices (8 GPUs)", devices, 8, Basis::guess},
      {"dgx1-v100",
       {"node.devices=4"},
       "2 x dgx1-v100, but for devices (8 GPUs)",
       [](const Cluster& c) { return static_cast<double>(c.node().mesh.size()); },
       6,
       Basis::guess},
      {"dgx1-v100",
       {"node.nvlink=[{a=0, b=1, count=6}]"},
       "2 x dgx1-v100, but for nvlink (16 GPUs)",
       [](const Cluster& c) { return static_cast<double>(c.node().mesh.size()); },
       1,
       Basis::guess},
      {"dgx1-v100",
       {"node.interconnect=pcie"},
       "2 x dgx1-v100, but for interconnect (16 GPUs)",
       [](const Cluster& c) { return c.node().pcie_bandwidth / 1e9; },
       15.75,
       Basis::guess},
      {"dgx1-v100",
       {"node.interconnect=nvswitch", "node.nvlink_gb_per_s=150"},
       "2 x dgx1-v100, but for interconnect, nvlink_gb_per_s (16 GPUs)",
       device_bandwidth,
       150,
       Basis::guess},
      {"dgx-a100",
       {"fabric.oversubscription=2"},
       "2 x dgx-a100, but for oversubscription (16 GPUs)",
       [](const Cluster& c) { return c.fabric().oversubscription; },
       2,
       Basis::guess},
      {"dgx-a100",
       {"fabric.kind=switch"},
       "2 x dgx-a100, but for kind (16 GPUs)",
       [](const Cluster& c) { return c.fabric().latency_s * 1e6; },
       0.25,
       Basis::guess},
      {"dgx-a100", {"nic_gbps=100"}, "2 x dgx-a100, but for nic_gbps (16 GPUs)", nic, 100, Basis::guess},
      {"dgx-a100", {"node.nic_gbps=100"}, "2 x dgx-a100, but for nic_gbps (16 GPUs)", nic, 100, Basis::guess},
      // The key directly in [cluster] takes precedence.
      {"dgx-a100",
       {"node.nic_gbps=100", "nic_gbps=50"},
       "2 x dgx-a100, but for nic_gbps (16 GPUs)",
       nic,
       50,
       Basis::guess},
      {"dgx-a100",
       {"nic_gbps=100", "basis=measured"},
       "2 x dgx-a100, but for nic_gbps (16 GPUs)",
       nic,
       100,
       Basis::measured},
      {"dgx-a100", {"name=lab", "devices_per_node=4"}, "2 x lab (8 GPUs)", devices, 8, Basis::published},
  };
  for (const Case& c : cases) {
    CAPTURE(c.preset, c.assignments);
    std::vector<std::string> assignments = {"cluster.nodes=2"};
    for (const std::string& assignment : c.assignments) assignments.push_back("cluster." + assignment);
    const auto cluster = changed("[cluster]\npreset = \"" + std::string(c.preset) + "\"\n", assignments);
    CHECK(cluster->title == c.title);
    CHECK(c.figure(*cluster) == Approx(c.expected));
    CHECK(cluster->network_basis == c.basis);
    CHECK((cluster->sources.back().rfind("changed by the scenario: ", 0) == 0) ==
          (c.basis != Basis::published));
  }
}

TEST_CASE("a device's changed constants no longer rest on what was published") {
  const auto cluster = changed(
      kDgx, {"cluster.node.device.gemm_efficiency.value=0.6", "cluster.node.device.peak_tflops.fp8.value=624",
             "cluster.node.device.memory_gib={value=40, basis=\"measured\", "
             "source=\"nvidia-smi\"}"});
  const Device& device = cluster->node().device;
  CHECK(device.name == "a100-80");
  CHECK(device.title == "NVIDIA A100 SXM 80GB, but for gemm_efficiency, peak_tflops.fp8, memory_gib");
  CHECK(cluster->title == "4 x dgx-a100, but for device (32 GPUs)");
  CHECK(described(device.gemm_efficiency) ==
        described(Sourced{0.6, Basis::guess, "set by the scenario, instead of 0.78"}));
  CHECK(described(device.peak_flops[4]) == described(Sourced{624e12, Basis::guess, "set by the scenario"}));
  CHECK(device.memory_bytes.basis == Basis::measured);
  CHECK(device.memory_bytes.source == "nvidia-smi");
  CHECK(device.memory_bandwidth.basis == Basis::published);
  // The constants of another device are not mixed with those of the cluster's device.
  const auto other =
      changed(kDgx, {"cluster.node.device.preset=h100", "cluster.node.device.compute_units=100"});
  CHECK(other->node().device.name == "h100");
  CHECK(other->node().device.compute_units == 100);
  CHECK(other->node().device.title == "NVIDIA H100 SXM 80GB, but for compute_units");
}

TEST_CASE("a cluster file's own device file is changed from beside the scenario") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "rehearse-topologies-overrides";
  fs::create_directories(folder / "parts");
  const auto device = [](const std::string& gib) {
    return "memory_gib = {value = " + gib +
           ", basis = \"measured\", source = \"free -b\"}\n"
           "memory_gb_per_s = {value = 3, basis = \"measured\", source = \"STREAM\"}\n"
           "[peak_tflops]\nfp32 = {value = 0.5, basis = \"guess\", source = \"a guess\"}\n";
  };
  std::ofstream(folder / "parts/lab.toml")
      << "[node]\ndevice_file = \"chip.toml\"\ndevices = 1\nnic_gbps = 10\n";
  std::ofstream(folder / "parts/chip.toml") << device("2");
  std::ofstream(folder / "other.toml") << device("4");
  const std::string lab = "[cluster]\nfile = \"parts/lab.toml\"\nnodes = 2\n";
  struct Case {
    std::string assignment, name;
    double gib;
  };
  for (const Case& c :
       {Case{"cluster.nodes=3", "chip", 2}, Case{"cluster.node.device_file=other.toml", "other", 4},
        Case{"cluster.node.device=v100", "v100", 16},
        Case{"cluster.node.device.memory_gib.value=8", "chip", 8},
        Case{"cluster.node.device.memory_gib=16", "chip", 16}}) {
    CAPTURE(c.assignment);
    const auto cluster = changed(lab, {c.assignment}, folder.string());
    CHECK(cluster->node().device.name == c.name);
    CHECK(cluster->node().device.memory_bytes.value == c.gib * 1073741824);
  }
  fs::remove_all(folder);
}

TEST_CASE("a bad change of a preset is refused at its own place, in the scenario's words") {
  struct Case {
    std::vector<std::string> assignments;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{"cluster.node.nic_gbp=4"},
       "--set cluster.node.nic_gbp=4: unknown key \"nic_gbp\" in [cluster.node]; did you mean \"nic_gbps\"?"},
      {{"cluster.node.devices=many"},
       "--set cluster.node.devices=many: cluster.node.devices is a string \"many\"; allowed: an integer from "
       "1 "
       "to 4096"},
      {{"cluster.node.interconnect=nvlink-mesh"},
       "--set cluster.node.interconnect=nvlink-mesh: cluster.node.nvlink_gb_per_s is missing with "
       "interconnect "
       "= \"nvlink-mesh\"; allowed: a number, in GB/s"},
      {{"cluster.node.interconnect=pcie", "cluster.node.nvlink_gb_per_s=300"},
       "--set cluster.node.nvlink_gb_per_s=300: cluster.node.nvlink_gb_per_s is given; allowed: only with "
       "interconnect = \"nvswitch\", \"nvlink-mesh\""},
      {{"cluster.node.nvlink=[]"},
       "--set cluster.node.nvlink=[]: cluster.node.nvlink is given; allowed: only with interconnect = "
       "\"nvlink-mesh\""},
      {{"cluster.fabric.kind=torus"},
       "--set cluster.fabric.kind=torus: cluster.fabric.kind is \"torus\" without dims; allowed: dims"},
      {{"cluster.fabric.kind=tree"},
       "--set cluster.fabric.kind=tree: cluster.fabric.kind is \"tree\"; allowed: \"switch\", "
       "\"leaf-spine\", "
       "\"links\", \"fat-tree\", \"rail\", \"ring\", \"torus\", \"dragonfly\""},
      {{"cluster.fabric.radix=2"},
       "--set cluster.fabric.radix=2: cluster.fabric.radix is 2 ports; allowed: at least 16 for one node's "
       "NICs and their uplinks"},
      {{"cluster.node=3"}, "--set cluster.node=3: cluster.node is 3; allowed: a table [cluster.node]"},
      {{"cluster.node.device.gemm_efficiency=high"},
       "--set cluster.node.device.gemm_efficiency=high: cluster.node.device.gemm_efficiency is a string "
       "\"high\"; "
       "allowed: a number above 0 and at most 4"},
      {{"cluster.node.device.preset=h10"},
       "--set cluster.node.device.preset=h10: cluster.node.device.preset is \"h10\"; allowed: a10, a100-40, "
       "a100-40-pcie, a100-80, a100-80-pcie, a30, a40, a800, b200, b300, cpu-core, gb200, gb300, gh200, "
       "h100, h100-96-500w, h100-nvl, h100-pcie, h20, h200, h800, k80, l4, l40s, p100, rtx-3090, rtx-4090, "
       "rtx-5090, rtx-6000-ada, rtx-a6000, rtx-pro-6000, t4, tpu-v4, v100, v100-32, v100s; did you mean "
       "\"h100\"?"},
      {{"cluster.link=[]"},
       "--set cluster.link=[]: cluster.link is given; allowed: only with kind = \"links\""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.assignments);
    CHECK(refusal(kDgx, c.assignments) == c.message);
  }
}

TEST_CASE("a bandwidth that the interconnect needs is named as missing, not another key as misspelt") {
  const std::string node =
      "[cluster.node]\ndevice = \"v100\"\ndevices = 2\ncpu_gb_per_s = 100\nnics = 1\ninterconnect = ";
  CHECK(refusal(node + "\"pcie\"\n", {}) ==
        "lab.toml:6:16: cluster.node.pcie_gb_per_s is missing with interconnect = \"pcie\"; allowed: a "
        "number, in GB/s");
  CHECK(refusal(node + "\"nvswitch\"\npcie_gb_per_s = 1\n", {}) ==
        "lab.toml:6:16: cluster.node.nvlink_gb_per_s is missing with interconnect = \"nvswitch\"; allowed: a "
        "number, in GB/s");
  CHECK(refusal(node + "\"pcie\"\npci_gb_per_s = 1\n", {}) ==
        "lab.toml:7:1: unknown key \"pci_gb_per_s\" in [cluster.node]; did you mean \"pcie_gb_per_s\"?");
  CHECK(refusal("[cluster]\nkind = \"fat-tree\"\nradx = 4\n" + node + "\"pcie\"\npcie_gb_per_s = 1\n", {}) ==
        "lab.toml:3:1: unknown key \"radx\" in [cluster]; did you mean \"radix\"?");
}
