// Checks PCIe switches between the devices of a node and its processor, and nodes of which only some devices
// are used.
#include "tests/catch.hpp"
#include "tests/topologies_cases.hpp"

using namespace rehearse;
using Names = std::vector<std::string>;

namespace {

// Returns two nodes of eight devices: two behind each of four switches, and four behind each of two switches
// above them.
ClusterParts pcie_tree(int nics) {
  ClusterParts parts = gpu_nodes(2, 8, nics);
  parts.node.interconnect = Node::Interconnect::pcie;
  parts.node.pcie_switches = {{2, 16e9}, {4, 24e9}};
  parts.server_nodes = 1;
  return parts;
}

}  // namespace

TEST_CASE("routes climb as many PCIe switches as lie between their ends") {
  struct Case {
    const char* what;
    int nics;
    Endpoint from, to;
    Names names;
  };
  const Endpoint processor = 16, server = 18;
  const std::vector<Case> cases = {
      {"behind one switch", 1, 0, 1, {"node0.gpu0.pcie.out", "node0.gpu1.pcie.in"}},
      {"one level up",
       1,
       0,
       2,
       {"node0.gpu0.pcie.out", "node0.switch0.pcie.out", "node0.switch1.pcie.in", "node0.gpu2.pcie.in"}},
      {"over the processor",
       1,
       3,
       7,
       {"node0.gpu3.pcie.out", "node0.switch1.pcie.out", "node0.switch4.pcie.out", "node0.switch5.pcie.in",
        "node0.switch3.pcie.in", "node0.gpu7.pcie.in"}},
      {"to the processor",
       1,
       5,
       processor,
       {"node0.gpu5.pcie.out", "node0.switch2.pcie.out", "node0.switch5.pcie.out"}},
      {"from the processor",
       1,
       processor,
       0,
       {"node0.switch4.pcie.in", "node0.switch0.pcie.in", "node0.gpu0.pcie.in"}},
      {"to a NIC at the processor",
       1,
       0,
       9,
       {"node0.gpu0.pcie.out", "node0.switch0.pcie.out", "node0.switch4.pcie.out", "node0.nic0.out",
        "node1.nic0.in", "node1.switch4.pcie.in", "node1.switch0.pcie.in", "node1.gpu1.pcie.in"}},
      {"to the NIC at its own switch",
       4,
       2,
       11,
       {"node0.gpu2.pcie.out", "node0.nic1.out", "node1.nic1.in", "node1.gpu3.pcie.in"}},
      {"the processor to a NIC at a switch",
       4,
       processor,
       server,
       {"node0.cpu.pcie.out", "node0.switch4.pcie.in", "node0.switch0.pcie.in", "node0.nic0.out",
        "server0.nic0.in", "server0.cpu.pcie.in"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const auto cluster = make_cluster(pcie_tree(c.nics));
    CHECK(names_of(*cluster, route_of(*cluster, c.from, c.to)) == c.names);
  }
}

TEST_CASE("switches' uplinks have names, bandwidths and no latency of their own") {
  const auto cluster = make_cluster(pcie_tree(1));
  for (LinkId l = 0; l < cluster->links(); ++l) {
    CAPTURE(cluster->link_name(l));
    const auto found = cluster->find_links(cluster->link_name(l));
    REQUIRE(found.size() == 1);
    CHECK(found[0] == l);
  }
  const auto uplink = cluster->find_links("node1.switch3.pcie"),
             above = cluster->find_links("node0.switch5.pcie");
  REQUIRE(uplink.size() == 2);
  REQUIRE(above.size() == 2);
  CHECK(cluster->bandwidth(uplink[0]) == 16e9);
  CHECK(cluster->bandwidth(above[1]) == 24e9);
  CHECK(cluster->latency_s(uplink[0]) == 0);
  CHECK(cluster->find_links("node0.switch6.pcie").empty());
  CHECK(cluster->find_links("server0.switch0.pcie").empty());
  CHECK(latency_of(*cluster, route_of(*cluster, 3, 7)) == Approx(1e-6));  // one hop inside the node
}

TEST_CASE("traffic between sockets crosses the links between them, copies to the host do not") {
  ClusterParts parts = pcie_tree(2);
  parts.node.sockets = 2;
  parts.node.inter_socket_bandwidth = 60e9;
  const auto cluster = make_cluster(parts);
  CHECK(names_of(*cluster, route_of(*cluster, 3, 7)) ==
        Names{"node0.gpu3.pcie.out", "node0.switch1.pcie.out", "node0.switch4.pcie.out", "node0.socket0.out",
              "node0.socket1.in", "node0.switch5.pcie.in", "node0.switch3.pcie.in", "node0.gpu7.pcie.in"});
  CHECK(names_of(*cluster, route_of(*cluster, 5, 4)) == Names{"node0.gpu5.pcie.out", "node0.gpu4.pcie.in"});
  CHECK(names_of(*cluster, route_of(*cluster, 5, cluster->processor_of_node(0))) ==
        Names{"node0.gpu5.pcie.out", "node0.switch2.pcie.out", "node0.switch5.pcie.out"});
  // A device of socket 0 by the NIC of socket 1, to a device of socket 1.
  CHECK(names_of(*cluster, route_of(*cluster, 0, 12, 1)) ==
        Names{"node0.gpu0.pcie.out", "node0.switch0.pcie.out", "node0.switch4.pcie.out", "node0.socket0.out",
              "node0.socket1.in", "node0.nic1.out", "node1.nic1.in", "node1.switch5.pcie.in",
              "node1.switch2.pcie.in", "node1.gpu4.pcie.in"});
  for (LinkId l = 0; l < cluster->links(); ++l) {
    CAPTURE(cluster->link_name(l));
    CHECK(cluster->find_links(cluster->link_name(l)) == std::vector<LinkId>{l});
  }
  const auto between = cluster->find_links("node1.socket1");
  REQUIRE(between.size() == 2);
  CHECK(cluster->bandwidth(between[0]) == 60e9);
  CHECK(cluster->latency_s(between[0]) == 0);
  CHECK(cluster->find_links("node0.socket2").empty());
  CHECK(cluster->find_links("server0.socket0").empty());
}

TEST_CASE("devices and NICs keep their sockets when only some are used") {
  const std::string head = "[cluster]\npreset = \"pcie-8gpu\"\ndevices_per_node = ";
  const auto six = cluster_of(head + "6\n");
  CHECK(names_of(*six, route_of(*six, 3, 4)) == Names{"node0.gpu3.pcie.out", "node0.switch0.pcie.out",
                                                      "node0.socket0.out", "node0.socket1.in",
                                                      "node0.switch1.pcie.in", "node0.gpu4.pcie.in"});
  CHECK(cluster_of(head + "1\n")->devices() == 1);
  Node odd;
  odd.devices = 3;
  odd.nics = 1;
  odd.sockets = 2;
  CHECK(odd.socket_of_device(1) == 0);
  CHECK(odd.socket_of_device(2) == 1);
  CHECK(odd.socket_of_nic(0) == 0);
}

TEST_CASE("sockets need bandwidths, and switches of which each hangs at one") {
  ClusterParts parts = pcie_tree(1);
  parts.node.sockets = 2;
  CHECK_THROWS_AS(make_cluster(parts), InputError);
  parts.node.inter_socket_bandwidth = 1e9;
  CHECK_NOTHROW(make_cluster(parts));
  parts.node.sockets = 4;
  CHECK_THROWS_AS(make_cluster(parts), InputError);
  parts.node.sockets = 65;
  CHECK_THROWS_AS(make_cluster(parts), InputError);
}

TEST_CASE("only some devices of each node are used") {
  const auto pair = cluster_of("[cluster]\npreset = \"dgx1-p100\"\ndevices_per_node = 2\n");
  CHECK(pair->devices() == 2);
  CHECK(pair->title == "1 x dgx1-p100 (2 GPUs)");
  CHECK(names_of(*pair, route_of(*pair, 0, 1)) == Names{"node0.gpu0-gpu1"});
  CHECK(names_of(*pair, route_of(*pair, 1, pair->processor_of_node(0))) ==
        Names{"node0.gpu1.pcie.out", "node0.switch0.pcie.out"});
  const auto quad = cluster_of("[cluster]\npreset = \"dgx1-p100\"\ndevices_per_node = 4\nnodes = 2\n");
  CHECK(quad->devices() == 8);
  CHECK(quad->node().nics == 2);
  CHECK(ring_orders(*quad, {0, 1, 2, 3}, 1).orders == std::vector<std::vector<Endpoint>>{{0, 1, 2, 3}});
  CHECK(cluster_of("[cluster]\npreset = \"aws-p2.8xlarge\"\ndevices_per_node = 1\n")->devices() == 1);
  // With all eight, NCCL 1's ring in the order of the devices has NVLinks except from 3 to 4 and from 7 to 0.
  const auto whole = cluster_of("[cluster]\npreset = \"dgx1-p100\"\n");
  CHECK(names_of(*whole, route_of(*whole, 3, 4)) == Names{"node0.gpu3.pcie.out", "node0.switch1.pcie.out",
                                                          "node0.switch2.pcie.in", "node0.gpu4.pcie.in"});
}
