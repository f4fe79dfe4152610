// Tests that blocks of nodes that a cluster calls equal can change places: a one-to-one map of links takes
// every route to the route between the moved ends.
#include <algorithm>
#include <map>

#include "tests/catch.hpp"
#include "topologies/cluster.hpp"

using namespace rehearse;

namespace {

ClusterParts fabric(Fabric::Kind kind, int nodes, int nodes_per_leaf, int spines, int nics) {
  ClusterParts parts;
  parts.name = "blocks";
  parts.node.device = device_preset("a100-80");
  parts.node.devices = 4;
  parts.node.device_bandwidth = 3e11;
  parts.node.nics = nics;
  parts.node.nic_bandwidth = 1e10;
  parts.fabric.kind = kind;
  parts.fabric.latency_s = 1e-6;
  parts.fabric.nodes_per_leaf = nodes_per_leaf;
  parts.fabric.spines = spines;
  parts.nodes = nodes;
  return parts;
}

// Exchanges the first two blocks.
int moved(int node, int block) {
  return node < block ? node + block : node < 2 * block ? node - block : node;
}

}  // namespace

TEST_CASE("equal blocks of nodes change places together with all routes between them") {
  struct Case {
    Fabric::Kind kind;
    int nodes, nodes_per_leaf, spines, nics;
    int block;  // a common multiple of the leaf and of what the number of spines asks for
  };
  const Case cases[] = {
      {Fabric::Kind::single_switch, 6, 0, 0, 2, 1},  // every node
      {Fabric::Kind::leaf_spine, 16, 4, 8, 2, 4},    // 4 x 2 ports, 8 spines: destinations keep their spines
      {Fabric::Kind::leaf_spine, 16, 4, 16, 2, 8},   // 16 spines for 8 ports: two leaves
      {Fabric::Kind::leaf_spine, 24, 4, 3, 1, 12},   // 3 spines: three leaves
      {Fabric::Kind::rail, 16, 4, 4, 2, 4},          // a port for each node
  };
  for (const Case& c : cases) {
    CAPTURE(static_cast<int>(c.kind), c.nodes_per_leaf, c.spines);
    const auto cluster = make_cluster(fabric(c.kind, c.nodes, c.nodes_per_leaf, c.spines, c.nics));
    CHECK(cluster->nodes_per_equal_block() == c.block);
    const int block = c.block, devices = cluster->node().devices;
    const auto moved_device = [&](Endpoint e) { return moved(e / devices, block) * devices + e % devices; };
    std::map<LinkId, LinkId> moves, back;
    for (Endpoint from = 0; from < cluster->devices(); ++from)
      for (Endpoint to = 0; to < cluster->devices(); ++to)
        for (const int rail : {-1, 0, c.nics - 1}) {
          std::vector<LinkId> here, there;
          cluster->route(from, to, rail, here);
          cluster->route(moved_device(from), moved_device(to), rail, there);
          REQUIRE(here.size() == there.size());
          for (std::size_t i = 0; i < here.size(); ++i) {
            REQUIRE(moves.emplace(here[i], there[i]).first->second == there[i]);
            REQUIRE(back.emplace(there[i], here[i]).first->second == here[i]);
            CHECK(cluster->bandwidth(here[i]) == cluster->bandwidth(there[i]));
            CHECK(cluster->latency_s(here[i]) == cluster->latency_s(there[i]));
            CHECK(moved(cluster->node_beside(here[i]) / block * block, block) ==
                  cluster->node_beside(there[i]) / block * block);
          }
          const auto beside_an_end = [&](LinkId l) {
            const int at = cluster->node_beside(l) / block;
            return at == cluster->node_of(from) / block || at == cluster->node_of(to) / block;
          };
          CHECK(std::all_of(here.begin(), here.end(), beside_an_end));
        }
  }
}

TEST_CASE("slow parts, hashed routes and other fabrics leave no equal blocks") {
  ClusterParts slow = fabric(Fabric::Kind::single_switch, 4, 0, 0, 1);
  slow.slow_devices = {{3, 0.5}};
  CHECK(make_cluster(slow)->nodes_per_equal_block() == 0);
  slow.slow_devices.clear();
  slow.slow_links = {{"node1.nic0", 0.5}};
  CHECK(make_cluster(slow)->nodes_per_equal_block() == 0);
  ClusterParts hashed = fabric(Fabric::Kind::leaf_spine, 16, 4, 8, 2);
  hashed.fabric.routing = Fabric::Routing::ecmp_hash;
  CHECK(make_cluster(hashed)->nodes_per_equal_block() == 0);
  CHECK(make_cluster(fabric(Fabric::Kind::ring, 4, 0, 0, 1))->nodes_per_equal_block() == 0);
}
