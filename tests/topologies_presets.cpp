#include <cmath>

#include "tests/catch.hpp"
#include "tests/topologies_cases.hpp"

using namespace rehearse;

TEST_CASE("every device preset loads, and every number has a source") {
  const auto names = device_names();
  for (const char* needed :
       {"a10",          "a100-40",  "a100-40-pcie", "a100-80",      "a100-80-pcie", "a30",
        "a40",          "a800",     "b200",         "b300",         "cpu-core",     "gb200",
        "gb300",        "gh200",    "h100",         "h100-96-500w", "h100-nvl",     "h100-pcie",
        "h20",          "h200",     "h800",         "k80",          "l4",           "l40s",
        "p100",         "rtx-3090", "rtx-4090",     "rtx-5090",     "rtx-6000-ada", "rtx-a6000",
        "rtx-pro-6000", "t4",       "tpu-v4",       "v100",         "v100-32",      "v100s"})
    CHECK(std::find(names.begin(), names.end(), needed) != names.end());
  for (const std::string& name : names) {
    CAPTURE(name);
    const Device d = device_preset(name);
    CHECK(d.name == name);
    CHECK(d.title != name);
    std::vector<Sourced> all = {d.memory_bytes,      d.memory_bandwidth,     d.gemm_efficiency,
                                d.gemm_prologue_k,   d.attention_efficiency, d.convolution_efficiency,
                                d.memory_efficiency, d.kernel_overhead_s,    d.optimizer_bytes_per_parameter};
    for (const auto* by_precision : {&d.peak_flops, &d.gemm_efficiency_at, &d.convolution_efficiency_at})
      for (const Sourced& s : *by_precision)
        if (s.value != 0) all.push_back(s);
    for (const Sourced& s : all) {
      CHECK(s.source.size() >= 5);
      CHECK(s.source != "not given");
    }
    for (const Sourced& s : {d.peak_flops[0], d.memory_bytes, d.memory_bandwidth, d.gemm_efficiency,
                             d.convolution_efficiency, d.attention_efficiency, d.memory_efficiency})
      CHECK(s.value > 0);
    for (std::size_t p = 0; p < kPrecisionNames.size(); ++p)
      CHECK(d.gemm_efficiency_of(static_cast<Precision>(p)).value <= 1);
  }
}

TEST_CASE("devices are as their data sheets say") {
  struct Case {
    const char* name;
    int capability, units;
    double fp32, tf32, fp16, bf16, fp8;  // dense TFLOP/s; 0: not supported
    double gib, gb_per_s;
    double nvfp4 = 0;  // besides mxfp8, whose peak is that of fp8
  };
  for (const Case& c : {Case{"p100", 60, 56, 10.6, 0, 21.2, 0, 0, 16, 732},
                        Case{"v100", 70, 80, 15.7, 0, 125, 0, 0, 16, 900},
                        Case{"a100-80", 80, 108, 19.5, 156, 312, 312, 0, 80, 2039},
                        Case{"h100", 90, 132, 67, 494.5, 989.5, 989.5, 1979, 80, 3350},
                        Case{"h100-96-500w", 90, 132, 67, 494.5, 989.5, 989.5, 1979, 96, 2400},
                        Case{"a100-40", 80, 108, 19.5, 156, 312, 312, 0, 40, 1555},
                        Case{"h200", 90, 132, 67, 494.5, 989.5, 989.5, 1979, 141e9 / 1073741824, 4800},
                        Case{"b200", 100, 148, 80, 1125, 2250, 2250, 4500, 180e9 / 1073741824, 8000, 9000},
                        Case{"gb200", 100, 148, 80, 1250, 2500, 2500, 5000, 186e9 / 1073741824, 8000, 10000},
                        Case{"b300", 103, 148, 600.0 / 8, 18e3 / 2 / 8, 36e3 / 2 / 8, 36e3 / 2 / 8,
                             72e3 / 2 / 8, 270e9 / 1073741824, 8000, 108e3 / 8},
                        Case{"gb300", 103, 148, 80, 180e3 / 2 / 72, 360e3 / 2 / 72, 360e3 / 2 / 72,
                             720e3 / 2 / 72, 279e9 / 1073741824, 8000, 15000},
                        Case{"v100-32", 70, 80, 15.7, 0, 125, 0, 0, 32, 900},
                        Case{"k80", 37, 13, 8.74 / 2, 0, 0, 0, 0, 24 / 2, 480.0 / 2},
                        Case{"tpu-v4", 0, 0, 275.0 / 6, 0, 0, 275, 0, 32, 1200},
                        Case{"v100s", 70, 80, 16.4, 0, 130, 0, 0, 32, 1134},
                        Case{"t4", 75, 40, 8.1, 0, 65, 0, 0, 16, 320},
                        Case{"a10", 86, 72, 31.2, 62.5, 125, 125, 0, 24, 600},
                        Case{"a30", 80, 56, 10.3, 82, 165, 165, 0, 24, 933},
                        Case{"a40", 86, 84, 37.4, 74.8, 149.7, 149.7, 0, 48, 696},
                        Case{"a100-40-pcie", 80, 108, 19.5, 156, 312, 312, 0, 40, 1555},
                        Case{"a100-80-pcie", 80, 108, 19.5, 156, 312, 312, 0, 80, 1935},
                        Case{"a800", 80, 108, 19.5, 156, 312, 312, 0, 80, 2039},
                        Case{"l4", 89, 58, 30.3, 60, 121, 121, 242.5, 24, 300},
                        Case{"l40s", 89, 142, 91.6, 183, 362, 362, 733, 48, 864},
                        Case{"rtx-3090", 86, 82, 35.6, 35.6, 71.2, 71.2, 0, 24, 936},
                        Case{"rtx-4090", 89, 128, 82.6, 82.6, 165.2, 165.2, 330.3, 24, 1008},
                        Case{"rtx-5090", 120, 170, 104.8, 104.8, 209.5, 209.5, 419, 32, 1792, 1676},
                        Case{"rtx-a6000", 86, 84, 38.7, 77.4, 154.8, 154.8, 0, 48, 768},
                        Case{"rtx-6000-ada", 89, 142, 91.1, 182.1, 364.2, 364.2, 728.5, 48, 960},
                        Case{"rtx-pro-6000", 120, 188, 125.9, 251.9, 503.8, 503.8, 1007.6, 96, 1792, 2015.2},
                        Case{"h100-pcie", 90, 114, 51, 378, 756, 756, 1513, 80, 2000},
                        Case{"h100-nvl", 90, 132, 60, 417.5, 835.5, 835.5, 1670.5, 94, 3938},
                        Case{"h800", 90, 132, 67, 494.5, 989.5, 989.5, 1979, 80, 3350},
                        Case{"h20", 90, 78, 44, 74, 148, 148, 296, 96, 4000},
                        Case{"gh200", 90, 132, 67, 494.5, 989.5, 989.5, 1979, 96, 4000}}) {
    CAPTURE(c.name);
    const Device d = device_preset(c.name);
    CHECK(d.compute_capability == c.capability);
    CHECK(d.compute_units == c.units);
    const double peaks[] = {c.fp32, c.tf32, c.fp16, c.bf16, c.fp8, c.nvfp4 > 0 ? c.fp8 : 0, c.nvfp4};
    for (std::size_t i = 0; i < kPrecisionNames.size(); ++i)
      CHECK(d.peak_flops[i].value == Approx(peaks[i] * 1e12).epsilon(1e-3));
    CHECK(d.memory_bytes.value == Approx(c.gib * 1073741824).epsilon(1e-3));
    CHECK(d.memory_bandwidth.value == Approx(c.gb_per_s * 1e9));
  }
  const Device cpu = device_preset("cpu-core");
  CHECK(cpu.compute_capability == 0);
  CHECK(cpu.peak_flops[0].value == Approx(2.2e9 * 2 * 16 * 2));  // clock, units, lanes, multiply and add
}

TEST_CASE("a plain number in a device file is a guess") {
  Document document = Document::parse_text(
      "title = \"card\"\nmemory_gib = 24\nmemory_gb_per_s = {value = 900, basis = \"published\", source = "
      "\"a data sheet\"}\n"
      "gemm_efficiency = 0.5\npeak_tflops = {fp32 = 20, bf16 = 40}\n",
      "card.toml");
  Section root = document.root();
  const Device card = read_device(root);
  CHECK(card.memory_bytes.value == 24 * 1073741824.0);
  CHECK(card.gemm_efficiency.value == 0.5);
  CHECK(card.peak_flops[static_cast<std::size_t>(Precision::bf16)].value == 40e12);
  for (const Sourced* guess : {&card.memory_bytes, &card.gemm_efficiency, &card.peak_flops[0]}) {
    CHECK(guess->basis == Basis::guess);
    CHECK(guess->deviation() == kDeviationOfBasis[static_cast<std::size_t>(Basis::guess)]);
  }
  CHECK(card.memory_bandwidth.basis == Basis::published);
}

TEST_CASE("efficiencies by precision") {
  const Device h100 = device_preset("h100");
  CHECK(h100.gemm_efficiency_of(Precision::bf16).value == h100.gemm_efficiency.value);
  // Published FP8 training sustains 1.08 to 1.11 PFLOP/s in long products.
  const double fp8 = h100.gemm_efficiency_of(Precision::fp8).value * h100.peak_flops[4].value;
  CHECK(fp8 > 1.05e15);
  CHECK(fp8 < 1.15e15);
  // DeepBench's best tensor-core product on a V100: 4096 x 7000 x 4096 in 2.092 ms.
  const Device v100 = device_preset("v100");
  const double share = v100.gemm_efficiency.value * 4096 / (4096 + v100.gemm_prologue_k.value);
  CHECK(2.0 * 4096 * 7000 * 4096 / (share * v100.peak_flops[2].value) == Approx(2.092e-3).epsilon(0.06));
}

TEST_CASE("every cluster preset loads, and states its sources") {
  struct Case {
    const char* name;
    int devices, nics;
    double nic_bytes_per_s;
    const char* device;
    int nodes_per_leaf;  // 0: one switch
  };
  const std::vector<Case> cases = {{"aws-p2.8xlarge", 8, 1, 1.25e9, "k80", 0},
                                   {"aws-p3.16xlarge", 8, 1, 3.125e9, "v100", 0},
                                   {"aws-p4d", 8, 4, 12.5e9, "a100-40", 8},  // 64 ports: 8 x 4 down, 32 up
                                   {"aws-p4de", 8, 4, 12.5e9, "a100-80", 8},
                                   {"aws-p5", 8, 8, 50e9, "h100", 4},
                                   {"cpu-cluster", 1, 1, 0.125e9, "cpu-core", 0},
                                   {"dgx-2", 16, 8, 12.5e9, "v100-32", 2},  // 36 ports: 2 x 8 down, 16 up
                                   {"dgx-a100", 8, 8, 25e9, "a100-80", 2},  // 40 ports: 2 x 8 down, 16 up
                                   {"dgx-a100-40", 8, 8, 25e9, "a100-40", 2},
                                   {"dgx-b200", 8, 8, 50e9, "b200", 32},  // rails: 64 ports, 32 down, 32 up
                                   {"dgx-h100", 8, 8, 50e9, "h100", 4},   // 64 ports: 4 x 8 down, 32 up
                                   {"dgx1-p100", 8, 4, 12.5e9, "p100", 4},
                                   {"dgx1-v100", 8, 4, 12.5e9, "v100", 4},  // 36 ports: 4 x 4 down, 16 up
                                   {"ethernet", 4, 1, 3.125e9, "p100", 0},
                                   {"gb200-nvl72", 72, 72, 50e9, "gb200", 32},
                                   {"gb300-nvl72", 72, 72, 100e9, "gb300", 72},  // 144 ports: 72 down, 72 up
                                   {"gcp-a3", 8, 4, 25e9, "h100", 8},
                                   {"gcp-k80x8", 8, 1, 2e9, "k80", 0},
                                   {"grand-teton-h100", 8, 8, 50e9, "h100-96-500w", 4},
                                   {"hgx-a800", 8, 8, 25e9, "a800", 2},
                                   {"hgx-b300", 8, 8, 100e9, "b300", 72},
                                   {"hgx-h20", 8, 8, 50e9, "h20", 4},
                                   {"hgx-h200", 8, 8, 50e9, "h200", 32},
                                   {"hgx-h800", 8, 8, 50e9, "h800", 4},
                                   {"jean-zay", 8, 4, 12.5e9, "a100-80", 6},  // 48 ports: 6 x 4 down, 24 up
                                   {"p100x4-25gbe", 4, 1, 3.125e9, "p100", 32},
                                   {"pcie-8gpu", 8, 2, 12.5e9, "l40s", 16},
                                   {"tpu-v4", 1, 1, 300e9, "tpu-v4", 0},
                                   {"v100-32", 8, 4, 12.5e9, "v100-32", 4},
                                   {"workstation-100gbe", 4, 1, 12.5e9, "a100-80", 0},
                                   {"workstation-10gbe", 4, 1, 1.25e9, "a100-80", 0},
                                   {"workstation-1gpu", 1, 1, 1.25e9, "rtx-4090", 0},
                                   {"workstation-2gpu", 2, 1, 1.25e9, "rtx-4090", 0},
                                   {"workstation-4gpu", 4, 1, 1.25e9, "rtx-4090", 0}};
  std::vector<std::string> names;
  for (const Case& c : cases) names.push_back(c.name);
  CHECK(cluster_names() == names);
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto cluster = cluster_of(std::string("[cluster]\npreset = \"") + c.name + "\"\nnodes = 6\n");
    CHECK(cluster->name == c.name);
    CHECK(cluster->sources.size() >= 2);
    for (const std::string& source : cluster->sources) CHECK(source.size() > 20);
    CHECK(cluster->nodes() == 6);
    CHECK(cluster->node().devices == c.devices);
    CHECK(cluster->node().nics == c.nics);
    CHECK(cluster->node().nic_bandwidth == Approx(c.nic_bytes_per_s));
    CHECK(cluster->node().device.name == c.device);
    CHECK(cluster->fabric().nodes_per_leaf == c.nodes_per_leaf);
    const auto links = route_of(*cluster, 0, cluster->devices() - 1);
    REQUIRE(!links.empty());
    double slowest = 1e18;
    for (const LinkId l : links) slowest = std::min(slowest, cluster->bandwidth(l));
    // A link of the torus is one of the six that represent its NIC.
    const double pace = std::string(c.name) == "tpu-v4" ? c.nic_bytes_per_s / 6 : c.nic_bytes_per_s;
    CHECK(slowest == Approx(pace));  // without oversubscription the NIC is the bottleneck
    CHECK(latency_of(*cluster, links) > 0);
  }
  CHECK(cluster_of("[cluster]\npreset = \"dgx-a100\"\nnodes = 128\n")->title ==
        "128 x dgx-a100 (1,024 GPUs)");
  CHECK(cluster_of("[cluster]\npreset = \"cpu-cluster\"\n")->title == "1 x cpu-cluster (1 device)");
}
