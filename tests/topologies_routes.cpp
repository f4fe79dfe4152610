#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/topologies_cases.hpp"

using namespace rehearse;
using Names = std::vector<std::string>;

TEST_CASE("routes contain what lies between their ends") {
  ClusterParts pcie = gpu_nodes(2, 4, 1);
  pcie.node.interconnect = Node::Interconnect::pcie;
  ClusterParts bare = gpu_nodes(3, 1, 1);
  bare.node.pcie_bandwidth = 0;
  bare.server_nodes = 2;
  ClusterParts clos = leaf_spine(8, 8, 8, 2, 16, 1);
  clos.server_nodes = 1;
  struct Case {
    const char* what;
    ClusterParts parts;
    Endpoint from, to;
    int rail;
    Names names;
    double latency_s;  // device hop 1 us, fabric hop 2 us
  };
  const std::vector<Case> cases = {
      {"same endpoint", clos, 5, 5, -1, {}, 0},
      {"NVSwitch", clos, 1, 6, -1, {"node0.gpu1.nvlink.out", "node0.gpu6.nvlink.in"}, 1e-6},
      {"own NICs, same leaf",
       clos,
       1,
       10,
       -1,
       {"node0.gpu1.pcie.out", "node0.nic1.out", "node1.nic2.in", "node1.gpu2.pcie.in"},
       4e-6},
      {"another's NIC at both ends (PXN)",
       clos,
       1,
       10,
       3,
       {"node0.gpu1.nvlink.out", "node0.gpu3.nvlink.in", "node0.gpu3.pcie.out", "node0.nic3.out",
        "node1.nic3.in", "node1.gpu3.pcie.in", "node1.gpu3.nvlink.out", "node1.gpu2.nvlink.in"},
       6e-6},
      {"over a spine: destination 2 x 8 + 3 modulo 16",
       clos,
       1,
       19,
       -1,
       {"node0.gpu1.pcie.out", "node0.nic1.out", "leaf0-spine3", "spine3-leaf1", "node2.nic3.in",
        "node2.gpu3.pcie.in"},
       8e-6},
      {"to a server node: NIC 0",
       clos,
       9,
       64 + 8,
       -1,
       {"node1.gpu1.pcie.out", "node1.nic1.out", "leaf0-spine0", "spine0-leaf4", "server0.nic0.in",
        "server0.cpu.pcie.in"},
       8e-6},
      {"processor by a rail: no NVLink",
       clos,
       64,
       64 + 8,
       5,
       {"node0.cpu.pcie.out", "node0.nic5.out", "leaf0-spine5", "spine5-leaf4", "server0.nic5.in",
        "server0.cpu.pcie.in"},
       8e-6},
      {"device and processor of a node", clos, 3, 64, -1, {"node0.gpu3.pcie.out", "node0.cpu.pcie.in"}, 0},
      {"mesh, two NVLinks", mesh_nodes(2), 1, 0, -1, {"node0.gpu1-gpu0"}, 1e-6},
      {"mesh without a direct NVLink",
       mesh_nodes(2),
       0,
       2,
       -1,
       {"node0.gpu0.pcie.out", "node0.gpu2.pcie.in"},
       1e-6},
      {"mesh, another's NIC: PCIe",
       mesh_nodes(2),
       0,
       4,
       1,
       {"node0.gpu0.pcie.out", "node0.nic1.out", "node1.nic1.in", "node1.gpu0.pcie.in"},
       5e-6},
      {"PCIe node", pcie, 2, 3, -1, {"node0.gpu2.pcie.out", "node0.gpu3.pcie.in"}, 1e-6},
      {"PCIe nodes",
       pcie,
       2,
       7,
       -1,
       {"node0.gpu2.pcie.out", "node0.nic0.out", "node1.nic0.in", "node1.gpu3.pcie.in"},
       5e-6},
      {"star without PCIe", bare, 0, 2, -1, {"node0.nic0.out", "node2.nic0.in"}, 4e-6},
      {"star, to a server", bare, 0, 7, -1, {"node0.nic0.out", "server1.nic0.in"}, 4e-6},
      {"processor without PCIe", bare, 1, 4, -1, {}, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const auto cluster = make_cluster(c.parts);
    const auto links = route_of(*cluster, c.from, c.to, c.rail);
    CHECK(names_of(*cluster, links) == c.names);
    CHECK(latency_of(*cluster, links) == Approx(c.latency_s).margin(1e-15));
  }
  CHECK_THROWS_AS(route_of(*make_cluster(clos), 0, 8, 8), std::out_of_range);
}

TEST_CASE("the way back mirrors the way there") {
  ClusterParts with_servers = gpu_nodes(3, 4, 2);
  with_servers.server_nodes = 2;
  for (const ClusterParts& parts :
       {with_servers, mesh_nodes(3), leaf_spine(5, 4, 4, 2, 1, 1), leaf_spine(6, 2, 1, 2, 4, 2)}) {
    const auto cluster = make_cluster(parts);
    const int ends = cluster->devices() + parts.nodes + parts.server_nodes;
    const bool one_way =
        cluster->fabric().kind == Fabric::Kind::single_switch || cluster->fabric().spines == 1;
    for (int rail = -1; rail < parts.node.nics; ++rail)
      for (Endpoint a = 0; a < ends; ++a)
        for (Endpoint b = 0; b < ends; ++b) {
          const auto there = route_of(*cluster, a, b, rail);
          auto back = route_of(*cluster, b, a, rail);
          REQUIRE(there.size() == back.size());
          REQUIRE(latency_of(*cluster, there) == Approx(latency_of(*cluster, back)));
          if (!one_way) continue;  // d-mod-k climbs through the spine of its destination
          std::reverse(back.begin(), back.end());
          for (LinkId& l : back) l = other_way(*cluster, l);
          REQUIRE(there == back);
        }
  }
}

TEST_CASE("a fabric's cut carries what the oversubscription leaves") {
  struct Case {
    int nodes, nics, nodes_per_leaf, spines;
    double ratio;
  };
  for (const Case& c :
       {Case{16, 1, 4, 2, 1}, Case{16, 1, 4, 2, 4}, Case{12, 8, 2, 16, 2}, Case{9, 2, 3, 5, 1.5}}) {
    CAPTURE(c.nodes, c.nics, c.nodes_per_leaf, c.spines, c.ratio);
    const auto cluster = make_cluster(leaf_spine(c.nodes, 1, c.nics, c.nodes_per_leaf, c.spines, c.ratio));
    double up = 0, down = 0;
    for (int s = 0; s < c.spines; ++s) {
      const std::string cable = "leaf1-spine" + std::to_string(s);
      const auto both = cluster->find_links(cable);
      REQUIRE(both.size() == 2);
      CHECK(cluster->link_name(both[0]) == cable);
      up += cluster->bandwidth(both[0]);
      down += cluster->bandwidth(both[1]);
    }
    const double below = c.nodes_per_leaf * c.nics * 25e9;
    CHECK(below / up == Approx(c.ratio));
    CHECK(below / down == Approx(c.ratio));
  }
}

TEST_CASE("spines are as many as a leaf's cables") {
  struct Case {
    int nics, nodes_per_leaf;
    double ratio, link_bandwidth;
    int spines;  // nodes_per_leaf x nics x 25 GB/s / ratio / link_bandwidth, rounded up
  };
  for (const Case& c :
       {Case{1, 4, 1, 0, 4}, Case{1, 4, 2, 0, 2}, Case{8, 2, 1, 50e9, 8}, Case{1, 3, 2, 0, 2}}) {
    ClusterParts parts = leaf_spine(8, 1, c.nics, c.nodes_per_leaf, 0, c.ratio);
    parts.fabric.link_bandwidth = c.link_bandwidth;
    CHECK(make_cluster(parts)->fabric().spines == c.spines);
  }
}

TEST_CASE("d-mod-k spreads destinations evenly and keeps one way to each") {
  // 8 leaves of 4 nodes and 4 spines: every spine serves 32 / 4 destinations, one in each leaf.
  const auto cluster = make_cluster(leaf_spine(32, 1, 1, 4, 4, 1));
  for (int source : {0, 13, 31}) {
    std::map<std::string, int> ways;
    for (int to = 0; to < 32; ++to) {
      if (to / 4 == source / 4) continue;
      const auto names = names_of(*cluster, route_of(*cluster, source, to));
      REQUIRE(names.size() == 6);
      ++ways[names[3]];
    }
    CHECK(ways.size() == 28);  // every destination leaves its spine by another link, so no two collide
    for (const auto& [name, count] : ways) CHECK(count == 1);
  }
  for (int to : {5, 6}) {
    std::set<std::string> last;
    for (int source = 8; source < 32; ++source)
      last.insert(names_of(*cluster, route_of(*cluster, source, to))[3]);
    CHECK(last.size() == 1);
  }
}

TEST_CASE("hashed ECMP uses every spine, unevenly, and always alike") {
  ClusterParts parts = leaf_spine(64, 1, 1, 4, 4, 1);
  parts.fabric.routing = Fabric::Routing::ecmp_hash;
  const auto cluster = make_cluster(parts), again = make_cluster(parts);
  std::vector<int> flows(4, 0);
  bool differs_by_source = false;
  for (int a = 0; a < 64; ++a)
    for (int b = 0; b < 64; ++b) {
      if (a / 4 == b / 4) continue;
      const auto links = route_of(*cluster, a, b);
      REQUIRE(links == route_of(*again, a, b));
      const std::string up = cluster->link_name(links[2]);
      ++flows[up.back() - '0'];
      if (a >= 4 && b >= 4)
        differs_by_source |= cluster->link_name(route_of(*cluster, 0, b)[2]).back() != up.back();
    }
  // 3,840 flows: 960 per spine, standard deviation sqrt(3840 x 1/4 x 3/4) = 27; the bound is five of them.
  for (int count : flows) CHECK(std::abs(count - 960) < 135);
  CHECK(differs_by_source);
}

TEST_CASE("every link's name finds it again") {
  ClusterParts graph = gpu_nodes(3, 1, 1);
  graph.fabric.kind = Fabric::Kind::links;
  graph.graph = {{"node0", "s_1", 1e9, 1e-6}, {"s_1", "node1", 1e9, 1e-6}, {"node2", "s_1", 1e9, 1e-6}};
  ClusterParts clos = leaf_spine(5, 4, 2, 2, 3, 1);
  clos.server_nodes = 2;
  for (const ClusterParts& parts : {graph, clos, mesh_nodes(2), gpu_nodes(12, 2, 1)}) {
    const auto cluster = make_cluster(parts);
    REQUIRE(cluster->links() > 0);
    std::set<std::string> names;
    for (LinkId l = 0; l < cluster->links(); ++l) {
      const std::string name = cluster->link_name(l);
      CAPTURE(name);
      REQUIRE(names.insert(name).second);
      const auto found = cluster->find_links(name);
      REQUIRE(!found.empty());
      REQUIRE(found[0] == l);
      const LinkId other = other_way(*cluster, l);
      REQUIRE(other >= 0);
      REQUIRE(other_way(*cluster, other) == l);
      REQUIRE(cluster->bandwidth(l) > 0);
      REQUIRE(cluster->bandwidth(l) == cluster->bandwidth(other));
    }
  }
  const auto cluster = make_cluster(clos);
  for (const char* wrong : {"",
                            "node",
                            "node0",
                            "node9.nic0",
                            "node0.nic2",
                            "node00.nic0",
                            "node-1.nic0",
                            "node0.nic0.up",
                            "leaf0",
                            "leaf0-leaf1",
                            "leaf4-spine0",
                            "leaf0-spine3",
                            "leaf0-spine",
                            "spine0-leaf0.out",
                            "server0.gpu0.pcie",
                            "server2.nic0",
                            "node0.gpu4.pcie",
                            "node0.gpu0-gpu1",
                            "node0.gpu0.nvlink.outs",
                            "node99999999999.nic0"}) {
    CAPTURE(wrong);
    CHECK(cluster->find_links(wrong).empty());
  }
}

TEST_CASE("slow links and devices are slower by their factors") {
  ClusterParts parts = leaf_spine(4, 2, 1, 2, 2, 1);
  parts.slow_links = {{"leaf0-spine1", 0.5}, {"node3.nic0.in", 0.25}, {"spine1-leaf0", 0.5}};
  parts.slow_devices = {{5, 0.8}};
  const auto cluster = make_cluster(parts);
  const auto at = [&](const char* name) { return cluster->bandwidth(cluster->find_links(name).at(0)); };
  CHECK(at("leaf0-spine0") == Approx(25e9));
  CHECK(at("leaf0-spine1") ==
        Approx(25e9 * 0.25));  // both directions twice: as the cable, and by its other name
  CHECK(at("spine1-leaf0") == Approx(25e9 * 0.25));
  CHECK(at("node3.nic0.in") == Approx(25e9 * 0.25));
  CHECK(at("node3.nic0.out") == Approx(25e9));
  CHECK(cluster->device_factor(5) == 0.8);
  CHECK(cluster->device_factor(4) == 1);
  CHECK(cluster->device_factor(cluster->processor_of_node(2)) == 1);
}

TEST_CASE("single links: the shortest way, then the quickest, then the first by name") {
  ClusterParts parts = gpu_nodes(4, 1, 1);
  parts.node.pcie_bandwidth = 0;
  parts.node.nic_bandwidth = 0;
  parts.fabric.kind = Fabric::Kind::links;
  parts.graph = {{"node0", "b", 1e9, 1e-6}, {"node0", "a", 1e9, 2e-6}, {"node0", "c", 1e9, 1e-6},
                 {"a", "node1", 1e9, 1e-6}, {"b", "node1", 1e9, 2e-6}, {"c", "node1", 1e9, 2e-6},
                 {"a", "node2", 1e9, 1e-6}, {"b", "node2", 1e9, 1e-6}, {"node2", "node3", 2e9, 1e-6}};
  auto cluster = make_cluster(parts);
  const auto names = [&](int a, int b) { return names_of(*cluster, route_of(*cluster, a, b)); };
  CHECK(names(0, 1) == Names{"node0-a", "a-node1"});  // three routes of 3 us: the name decides
  CHECK(names(0, 2) == Names{"node0-b", "b-node2"});  // 2 us, not 3
  CHECK(names(3, 0) == Names{"node3-node2", "node2-b", "b-node0"});
  CHECK(latency_of(*cluster, route_of(*cluster, 3, 0)) == Approx(3e-6));
  CHECK(cluster->bandwidth(cluster->find_links("node3-node2").at(0)) == 2e9);

  parts.node.nic_bandwidth = 5e9;  // the NICs are now part of the route, without a latency of their own
  cluster = make_cluster(parts);
  CHECK(names(0, 2) == Names{"node0.nic0.out", "node0-b", "b-node2", "node2.nic0.in"});
  CHECK(latency_of(*cluster, route_of(*cluster, 0, 2)) == Approx(2e-6));
}

TEST_CASE("sixteen thousand devices cost no memory, only numbers") {
  const auto small = make_cluster(leaf_spine(2, 8, 8, 2, 16, 1));
  ClusterParts parts = leaf_spine(2048, 8, 8, 2, 16, 1);
  const auto big = make_cluster(parts);
  CHECK(big->devices() == 16384);
  // A node has 2 x 8 NVLinks, 2 x 9 PCIe links and 2 x 8 NICs; a leaf has 2 x 16 uplinks.
  CHECK(big->links() == 2048 * (16 + 18 + 16) + 1024 * 32);
  CHECK(small->links() == 2 * 50 + 32);
  // Links are not stored but computed from their numbers: each is found by its name and back, also at the far
  // end of the cluster.
  for (const char* name : {"node2047.nic7.in", "spine15-leaf1023", "node1999.gpu3.nvlink.out"})
    CHECK(big->link_name(big->find_links(name).at(0)) == name);
  std::vector<LinkId> links;
  std::int64_t total = 0;
  for (int step = 0; step < 100; ++step)
    for (Endpoint from = 0; from < 16384; ++from) {
      links.clear();
      big->route(from, (from + 8 * (step + 2)) % 16384, -1, links);
      total += static_cast<std::int64_t>(links.size());
    }
  // From an even node, 2 or more nodes further is always another leaf: 6 links.
  CHECK(total == std::int64_t{100} * 16384 * 6);
}
