#include "topologies/faster.hpp"

#include "tests/catch.hpp"

using namespace rehearse;

TEST_CASE("parts of a cluster are faster, and nothing else is") {
  ClusterParts parts;
  parts.name = "lab";
  parts.nodes = 2;
  parts.node.device = device_preset("a100-80");
  parts.node.devices = 2;
  parts.node.device_bandwidth = 100e9;
  parts.node.device_latency_s = 1e-6;
  parts.node.pcie_bandwidth = 20e9;
  parts.node.nic_bandwidth = 10e9;
  parts.fabric.latency_s = 2e-6;
  parts.slow_devices = {{1, 0.5}};
  const auto cluster = make_cluster(parts);
  Faster factors;
  factors.devices = 2;
  factors.device_memory = 3;
  factors.intra_node_links = 5;
  factors.network_links = 7;
  factors.processors = 11;
  const auto changed = faster(cluster, factors);
  REQUIRE(changed->links() == cluster->links());
  int inside = 0;
  for (LinkId link = 0; link < cluster->links(); ++link) {
    CAPTURE(cluster->link_name(link));
    const bool is_network = cluster->link_name(link).find("nic") != std::string::npos;
    CHECK(cluster->inside_node(link) == !is_network);
    CHECK(changed->inside_node(link) == !is_network);
    CHECK(changed->bandwidth(link) == Approx(cluster->bandwidth(link) * (is_network ? 7 : 5)));
    CHECK(changed->latency_s(link) == cluster->latency_s(link));
    CHECK(changed->link_name(link) == cluster->link_name(link));
    inside += is_network ? 0 : 1;
  }
  CHECK(inside > 0);
  CHECK(changed->device_factor(0) == 2);
  CHECK(changed->device_factor(1) == 1);  // a device at half speed, made twice as fast
  CHECK(changed->device_factor(changed->processor_of_node(1)) == 11);
  CHECK(changed->node().device.memory_bandwidth.value ==
        Approx(3 * cluster->node().device.memory_bandwidth.value));
  std::vector<LinkId> route, same;
  changed->route(0, 3, -1, route);
  cluster->route(0, 3, -1, same);
  CHECK(route == same);
  CHECK(changed->find_links("node1.nic0") == cluster->find_links("node1.nic0"));
}
