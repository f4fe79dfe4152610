// Tests the time that a node's processors, memory and drives take for data that is stored off its devices.
#include <fmt/format.h>

#include "simulator/costs/host.hpp"
#include "simulator/costs/memory.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

Node node_of(const std::string& cluster) {
  return read_scenario_text(
             "[model]\npreset = \"bert-large\"\n[training]\nglobal_batch = 16\n[cluster]\n" + cluster,
             "test.toml", {})
      .cluster->node();
}

Op host(HostAction action, double bytes) {
  Op op;
  op.kind = OpKind::host;
  op.host_action = action;
  op.host_bytes = bytes;
  return op;
}

}  // namespace

TEST_CASE("host: a device's share of what its node copies") {
  // 16 lanes of PCIe 4.0 for each device, or of PCIe 3.0 for two devices behind a switch.
  CHECK(host_copy_bandwidth(node_of("preset = \"dgx-a100\"\n")) == Approx(31.5e9));
  CHECK(host_copy_bandwidth(node_of("preset = \"dgx1-p100\"\n")) == Approx(13.1e9 / 2));
  const std::string switches =
      "preset = \"dgx-a100\"\n[cluster.node]\npcie_switch = [{devices = 2, gb_per_s = 20}, {devices = 4, "
      "gb_per_s = 30}]\n";
  CHECK(host_copy_bandwidth(node_of(switches)) == Approx(30e9 / 4));
  CHECK(host_copy_bandwidth(node_of(switches + "host_links_gb_per_s = 64\n")) == Approx(8e9));
  CHECK(host_copy_bandwidth(node_of(switches + "host_links_gb_per_s = 64\nhost_link_gb_per_s = 7\n")) ==
        Approx(7e9));
  // ZeRO-Infinity, figure 2b: 3 GB/s to host memory with all 16 devices active, 12 GB/s for a single one.
  CHECK(host_copy_bandwidth(node_of("preset = \"dgx-2\"\n")) == Approx(3e9));
  CHECK(host_copy_bandwidth(node_of("preset = \"dgx-2\"\ndevices_per_node = 1\n")) == Approx(12e9));
}

TEST_CASE("host: seconds of copies, updates and drives") {
  Node node;
  node.devices = 4;
  node.host_link_bandwidth = 10e9;
  node.cpu_memory_bandwidth = 100e9;
  node.nvme_read_bandwidth = 8e9;
  node.nvme_write_bandwidth = 4e9;
  CHECK(host_time_s(host(HostAction::copy_to_host, 5e9), node) == Approx(0.5));
  CHECK(host_time_s(host(HostAction::copy_to_device, 5e9), node) == Approx(0.5));
  CHECK(host_time_s(host(HostAction::update, 5e9), node) == Approx(0.2 / kHostUpdateEfficiency));
  CHECK(host_time_s(host(HostAction::read_nvme, 5e9), node) == Approx(2.5));
  CHECK(host_time_s(host(HostAction::write_nvme, 5e9), node) == Approx(5));
  CHECK(host_time_s(host(HostAction::load_batch, 5e9), node) == 0);
  CHECK(host_time_s(host(HostAction::update, 0), Node()) == 0);
  CHECK(missing_host_key(node, true).empty());
  node.nvme_write_bandwidth = 0;
  CHECK(missing_host_key(node, true) == "nvme_write_gb_per_s");
  CHECK(missing_host_key(node, false).empty());
  node.cpu_memory_bandwidth = 0;
  CHECK(missing_host_key(node, false) == "cpu_gb_per_s");
  node.host_link_bandwidth = 0;
  CHECK(missing_host_key(node, false) == "host_link_gb_per_s");
}

TEST_CASE("host: CPU-Adam's times on a DGX-2") {
  // Ren et al. 2021, table 4.
  struct Row {
    double parameters, measured_s;
  };
  const Node node = node_of("preset = \"dgx-2\"\ndevices_per_node = 1\n");
  for (const Row& row : {Row{1e9, 0.22}, Row{2e9, 0.51}, Row{4e9, 1.03}, Row{8e9, 2.41}, Row{10e9, 2.57}}) {
    CAPTURE(row.parameters);
    const double bytes = row.parameters * update_bytes(Optimizer::adam, Precision::fp16, Precision::fp16);
    CHECK(host_time_s(host(HostAction::update, bytes), node) == Approx(row.measured_s).epsilon(0.2));
  }
}
