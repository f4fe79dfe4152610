#include <map>
#include <set>

#include "tests/catch.hpp"
#include "tests/topologies_cases.hpp"

using namespace rehearse;

namespace {

// Counts how often one lap of all rings uses each link.
std::map<std::string, int> uses_of(const Cluster& cluster, const Rings& rings) {
  std::map<std::string, int> uses;
  for (std::size_t c = 0; c < rings.orders.size(); ++c) {
    const auto& order = rings.orders[c];
    for (std::size_t i = 0; i < order.size(); ++i)
      for (const LinkId l : route_of(cluster, order[i], order[(i + 1) % order.size()], rings.rails[c]))
        ++uses[cluster.link_name(l)];
  }
  return uses;
}

std::shared_ptr<const Cluster> preset(const std::string& name, int nodes) {
  return cluster_of("[cluster]\npreset = \"" + name + "\"\nnodes = " + std::to_string(nodes) + "\n");
}

}  // namespace

TEST_CASE("rings over several nodes use every NIC once in and once out") {
  for (const char* name : {"dgx-a100", "dgx-h100", "dgx1-v100"}) {
    CAPTURE(name);
    const auto cluster = preset(name, 4);
    const int nics = cluster->node().nics;
    const auto members = first_devices(cluster->devices());
    const Rings rings = ring_orders(*cluster, members, 0);
    REQUIRE(static_cast<int>(rings.orders.size()) == nics);
    CHECK(std::set<int>(rings.rails.begin(), rings.rails.end()).size() == rings.rails.size());
    for (const auto& order : rings.orders) {
      auto sorted = order;
      std::sort(sorted.begin(), sorted.end());
      CHECK(sorted == members);
      int crossings = 0;
      for (std::size_t i = 0; i < order.size(); ++i)
        crossings += cluster->node_of(order[i]) != cluster->node_of(order[(i + 1) % order.size()]);
      CHECK(crossings == cluster->nodes());
    }
    const auto uses = uses_of(*cluster, rings);
    for (int node = 0; node < cluster->nodes(); ++node)
      for (int n = 0; n < nics; ++n)
        for (const char* direction : {".in", ".out"}) {
          const std::string nic = "node" + std::to_string(node) + ".nic" + std::to_string(n) + direction;
          CAPTURE(nic);
          CHECK(uses.count(nic) == 1);
          CHECK(uses.at(nic) == 1);
        }
  }
}

TEST_CASE("the DGX-1's mesh and its rings") {
  const auto cluster = preset("dgx1-v100", 1);
  const Node& node = cluster->node();
  std::vector<int> nvlinks(8, 0);
  for (const auto& m : node.mesh) {
    nvlinks[m.a] += m.count;
    nvlinks[m.b] += m.count;
  }
  CHECK(nvlinks == std::vector<int>(8, 6));  // a V100 has six

  const Rings rings = ring_orders(*cluster, first_devices(8), 0);
  CHECK(rings.orders.size() == 6);  // three rings, in both directions
  const auto uses = uses_of(*cluster, rings);
  int used = 0;
  for (const auto& [name, count] : uses) {
    CAPTURE(name);
    REQUIRE(name.find("-gpu") != std::string::npos);  // never PCIe
    const double bandwidth = cluster->bandwidth(cluster->find_links(name).at(0));
    CHECK(count * 25e9 <= bandwidth);
    used += count;
  }
  CHECK(used == 6 * 8);  // so all 24 NVLinks in both directions
}

TEST_CASE("a subset of a mesh gets the rings that its NVLinks carry") {
  const auto cluster = preset("dgx1-v100", 1);
  struct Case {
    std::vector<Endpoint> members;
    std::size_t rings;
  };
  // Among 0 to 3, each of 0 and 1 has four NVLinks: 0-1-2-3 and 0-2-1-3, in both directions. 0-4 is a pair
  // with two NVLinks, and a ring of two uses both directions of one. 0-1-2 closes by the single NVLink 0-1.
  // With 5 and 6 as neighbours, 4 has four NVLinks in the first seven; in the first six it has three, of
  // which rings use two. 0 and 7 have no NVLink, which leaves one ring over PCIe; the same holds for 1 and 6
  // in 0, 1, 6 and 7.
  for (const Case& c : {Case{{0, 1, 2, 3}, 4}, Case{{0, 1, 2}, 2}, Case{{0, 4}, 2}, Case{{0, 1}, 1},
                        Case{{0, 1, 2, 3, 4, 5}, 2}, Case{{0, 1, 2, 3, 4, 5, 6}, 4}, Case{{0, 7}, 1},
                        Case{{0, 1, 6, 7}, 1}, Case{{3}, 1}}) {
    CAPTURE(c.members);
    const Rings rings = ring_orders(*cluster, c.members, 0);
    REQUIRE(rings.orders.size() == c.rings);
    for (const auto& order : rings.orders)
      CHECK(std::set<int>(order.begin(), order.end()).size() == c.members.size());
    for (const auto& [name, count] : uses_of(*cluster, rings)) {
      CAPTURE(name);
      if (c.rings > 1) CHECK(count * 25e9 <= cluster->bandwidth(cluster->find_links(name).at(0)));
    }
  }
}

TEST_CASE("a member with one neighbour on a mesh is reached through it") {
  // Among the first five, 4 has two NVLinks, both to 0: there are two rings, in which 0 relays what 4 sends
  // or receives.
  const auto cluster = preset("dgx1-v100", 1);
  const Rings rings = ring_orders(*cluster, first_devices(5), 0);
  REQUIRE(rings.orders.size() == 2);
  std::map<std::pair<int, int>, int> used;
  for (std::size_t c = 0; c < rings.orders.size(); ++c) {
    REQUIRE(rings.relays[c].size() == 1);
    const auto& hop = rings.relays[c].front();
    CHECK(hop[1] == 0);
    CHECK((hop[0] == 4 || hop[2] == 4));
    const auto& order = rings.orders[c];
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int from = order[i], to = order[(i + 1) % order.size()];
      if (from == hop[0] && to == hop[2]) {
        ++used[{from, 0}];
        ++used[{0, to}];
      } else {
        ++used[{from, to}];
      }
    }
  }
  for (const auto& [pair, times] : used) {  // no NVLink is used twice in one direction
    CAPTURE(pair.first, pair.second, times);
    int links = 0;
    for (const auto& m : cluster->node().mesh)
      if ((m.a == pair.first && m.b == pair.second) || (m.b == pair.first && m.a == pair.second))
        links = m.count;
    CHECK(times <= links);
  }
}

TEST_CASE("how many channels there are, and by which NIC they enter") {
  const auto nvswitch = make_cluster(gpu_nodes(4, 8, 8));
  const auto two_a_nic = make_cluster(gpu_nodes(2, 8, 4));
  const auto mesh = make_cluster(mesh_nodes(2));
  const auto singles = make_cluster(gpu_nodes(4, 1, 2));
  ClusterParts with_servers = gpu_nodes(2, 2, 2);
  with_servers.server_nodes = 2;
  const auto servers = make_cluster(with_servers);
  struct Case {
    const char* what;
    std::shared_ptr<const Cluster> cluster;
    std::vector<Endpoint> members;
    int channels;
    std::vector<int> rails;
    std::vector<Endpoint> last;  // the last channel's order
  };
  const std::vector<Case> cases = {
      {"one node", nvswitch, {0, 1, 2, 3}, 0, {-1}, {0, 1, 2, 3}},
      {"one node, more asked", nvswitch, {0, 1, 2, 3}, 5, {-1}, {0, 1, 2, 3}},
      {"one member a node", nvswitch, {3, 11, 19, 27}, 0, {-1}, {3, 11, 19, 27}},
      {"two members a node", nvswitch, {4, 6, 12, 14}, 0, {4, 6}, {6, 4, 14, 12}},
      {"as many as asked", nvswitch, {4, 6, 12, 14}, 1, {4}, {4, 6, 12, 14}},
      {"not more than NICs", nvswitch, {4, 6, 12, 14}, 64, {4, 6}, {6, 4, 14, 12}},
      {"nodes interleaved: grouped", nvswitch, {8, 0, 9, 1}, 0, {0, 1}, {9, 8, 1, 0}},
      {"two devices a NIC", two_a_nic, {0, 1, 2, 3, 8, 9, 10, 11}, 0, {0, 1}, {2, 3, 0, 1, 10, 11, 8, 9}},
      {"mesh nodes: two NICs, two ways round", mesh, first_devices(8), 0, {0, 1}, {3, 2, 1, 0, 7, 6, 5, 4}},
      {"NICs without a device of their own", singles, {0, 1, 2, 3}, 0, {-1}, {0, 1, 2, 3}},
      {"servers", servers, {8, 9, 7, 6}, 0, {-1}, {}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    if (std::string(c.what) == "servers") {
      // Endpoints: 4 devices, 2 processors, 2 servers' processors (6 and 7).
      const Rings rings = ring_orders(*c.cluster, {7, 4, 6}, 0);
      CHECK(rings.rails == std::vector<int>{-1});
      CHECK(rings.orders == std::vector<std::vector<Endpoint>>{{7, 4, 6}});
      continue;
    }
    const Rings rings = ring_orders(*c.cluster, c.members, c.channels);
    CHECK(rings.rails == c.rails);
    REQUIRE(rings.orders.size() == c.rails.size());
    CHECK(rings.orders.back() == c.last);
  }
}
