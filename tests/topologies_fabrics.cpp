#include <cstdint>
#include <map>
#include <set>

#include "tests/catch.hpp"
#include "tests/topologies_cases.hpp"

using namespace rehearse;

namespace {

// Returns nodes with `nics` devices, as many NICs of 25 GB/s and no PCIe: a route is NIC, cables, NIC.
ClusterParts bare(int nodes, Fabric::Kind kind, int nics = 1) {
  ClusterParts parts = gpu_nodes(nodes, nics, nics);
  parts.node.pcie_bandwidth = 0;
  parts.fabric.kind = kind;
  return parts;
}

ClusterParts fat_tree(int nodes, int radix, double ratio = 1, int nics = 1) {
  ClusterParts parts = bare(nodes, Fabric::Kind::fat_tree, nics);
  parts.fabric.radix = radix;
  parts.fabric.oversubscription = ratio;
  return parts;
}

ClusterParts rail(int nodes, int nics, int nodes_a_group, int spines, double ratio = 1) {
  ClusterParts parts = bare(nodes, Fabric::Kind::rail, nics);
  parts.fabric.nodes_per_leaf = nodes_a_group;
  parts.fabric.spines = spines;
  parts.fabric.oversubscription = ratio;
  return parts;
}

ClusterParts torus(const std::vector<int>& dims) {
  int nodes = 1;
  for (const int size : dims) nodes *= size;
  ClusterParts parts = bare(nodes, Fabric::Kind::torus);
  parts.fabric.dims = dims;
  return parts;
}

ClusterParts with_idle_places(std::vector<int> dims, int nodes) {
  ClusterParts parts = torus(dims);
  parts.nodes = nodes;
  return parts;
}

ClusterParts dragonfly(int groups, int routers, int nodes_a_router) {
  ClusterParts parts = bare(groups * routers * nodes_a_router, Fabric::Kind::dragonfly);
  parts.fabric.routers_per_group = routers;
  parts.fabric.nodes_per_router = nodes_a_router;
  return parts;
}

bool is_nic(const std::string& name) {
  return name.find(".nic") != std::string::npos;
}

// Returns the cables of a route, without the NICs at its ends.
std::vector<LinkId> cables_of(const Cluster& cluster, Endpoint from, Endpoint to) {
  std::vector<LinkId> links;
  for (const LinkId l : route_of(cluster, from, to))
    if (!is_nic(cluster.link_name(l))) links.push_back(l);
  return links;
}

std::pair<std::string, std::string> ends_of(const Cluster& cluster, LinkId l) {
  const std::string name = cluster.link_name(l);
  const std::size_t dash = name.find('-');
  return {name.substr(0, dash), name.substr(dash + 1)};
}

// Returns the bandwidth in one direction (bytes/s) from the ends for which `inside` is true to all others.
template <class Inside>
double cut(const Cluster& cluster, Inside inside) {
  double bytes_per_s = 0;
  for (LinkId l = 0; l < cluster.links(); ++l) {
    const std::string name = cluster.link_name(l);
    if (is_nic(name) || name.find(".gpu") != std::string::npos) continue;
    const auto [a, b] = ends_of(cluster, l);
    if (inside(a) && !inside(b)) bytes_per_s += cluster.bandwidth(l);
  }
  return bytes_per_s;
}

int number_in(const std::string& name) {
  return std::stoi(name.substr(name.find_first_of("0123456789")));
}

int around(int a, int b, int size) {
  const int ahead = (b - a + size) % size;
  return std::min(ahead, size - ahead);
}

const std::vector<ClusterParts> kAll = {fat_tree(16, 4),
                                        fat_tree(13, 4, 1, 1),
                                        fat_tree(30, 6, 2),
                                        fat_tree(8, 4, 1, 2),
                                        rail(12, 4, 3, 3),
                                        rail(5, 2, 2, 1),
                                        bare(1, Fabric::Kind::ring),
                                        bare(2, Fabric::Kind::ring),
                                        bare(7, Fabric::Kind::ring),
                                        torus({4, 3}),
                                        torus({2, 1, 5}),
                                        torus({4, 4, 4}),
                                        torus({2, 2, 2}),
                                        dragonfly(1, 3, 2),
                                        dragonfly(2, 4, 1),
                                        dragonfly(9, 4, 2),
                                        dragonfly(6, 3, 1),
                                        dragonfly(5, 2, 1),
                                        with_idle_places({3, 4}, 7)};

}  // namespace

TEST_CASE("fabrics: routes have the length that the formula says") {
  struct Case {
    const char* what;
    ClusterParts parts;
    int (*cables)(int a, int b);  // between the only devices of two different nodes
  };
  const std::vector<Case> cases = {
      // k = 4: two NICs per edge switch, four per pod; routes climb as many tiers as needed.
      {"fat tree of 4", fat_tree(16, 4),
       [](int a, int b) { return a / 2 == b / 2   ? 0
                                 : a / 4 == b / 4 ? 2
                                                  : 4; }},
      // k = 6, two to one: four ports down and two up, three edge switches and so twelve NICs per pod.
      {"fat tree, oversubscribed", fat_tree(60, 6, 2),
       [](int a, int b) { return a / 4 == b / 4     ? 0
                                 : a / 12 == b / 12 ? 2
                                                    : 4; }},
      {"rail", rail(12, 1, 3, 3), [](int a, int b) { return a / 3 == b / 3 ? 0 : 2; }},
      {"ring of 7", bare(7, Fabric::Kind::ring), [](int a, int b) { return around(a, b, 7); }},
      {"ring of 8", bare(8, Fabric::Kind::ring), [](int a, int b) { return around(a, b, 8); }},
      {"ring of 2", bare(2, Fabric::Kind::ring), [](int, int) { return 1; }},
      {"torus of 4 x 3", torus({4, 3}),
       [](int a, int b) { return around(a % 4, b % 4, 4) + around(a / 4, b / 4, 3); }},
      {"torus of 4 x 4 x 4", torus({4, 4, 4}),
       [](int a, int b) {
         return around(a % 4, b % 4, 4) + around(a / 4 % 4, b / 4 % 4, 4) + around(a / 16, b / 16, 4);
       }},
      {"torus of 2 x 1 x 5", torus({2, 1, 5}),
       [](int a, int b) { return (a % 2 != b % 2) + around(a / 2, b / 2, 5); }},
      // Three groups of two routers: group g's cable to group g + 1 is at its router 0, to g + 2 at router 1.
      {"dragonfly", dragonfly(3, 2, 2), [](int a, int b) {
         const int ra = a / 2, rb = b / 2, ga = ra / 2, gb = rb / 2;
         if (ga == gb) return ra == rb ? 0 : 1;
         const int exit = (gb - ga + 3) % 3 - 1, entry = (ga - gb + 3) % 3 - 1;
         return 1 + (ra % 2 != exit) + (rb % 2 != entry);
       }}};
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const auto cluster = make_cluster(c.parts);
    for (int a = 0; a < c.parts.nodes; ++a)
      for (int b = 0; b < c.parts.nodes; ++b) {
        if (a == b) continue;
        CAPTURE(a, b);
        const auto links = route_of(*cluster, a, b);
        REQUIRE(static_cast<int>(links.size()) == 2 + c.cables(a, b));
        // A hop has 2 us; where cables join nodes directly, the NICs add none.
        const bool direct = !c.parts.fabric.dims.empty() || c.parts.fabric.kind == Fabric::Kind::ring;
        REQUIRE(latency_of(*cluster, links) == Approx(2e-6 * (c.cables(a, b) + (direct ? 0 : 2))));
      }
  }
}

TEST_CASE("fabrics: every hop begins where the last one ended, and the way back is as long") {
  for (const ClusterParts& parts : kAll)
    for (const auto routing : {Fabric::Routing::d_mod_k, Fabric::Routing::ecmp_hash}) {
      ClusterParts routed = parts;
      routed.fabric.routing = routing;
      const auto cluster = make_cluster(routed);
      std::map<Endpoint, std::string> attached;  // the switch at which a device's routes begin and end
      const auto meets = [&](Endpoint e, const std::string& end) {
        return attached.emplace(e, end).first->second == end;
      };
      for (Endpoint a = 0; a < cluster->devices(); ++a)
        for (Endpoint b = 0; b < cluster->devices(); ++b) {
          if (cluster->node_of(a) == cluster->node_of(b)) continue;
          CAPTURE(static_cast<int>(parts.fabric.kind), a, b);
          const auto cables = cables_of(*cluster, a, b);
          REQUIRE(cables.size() == cables_of(*cluster, b, a).size());
          for (std::size_t i = 1; i < cables.size(); ++i)
            REQUIRE(ends_of(*cluster, cables[i]).first == ends_of(*cluster, cables[i - 1]).second);
          if (cables.empty()) continue;
          REQUIRE(meets(a, ends_of(*cluster, cables.front()).first));
          REQUIRE(meets(b, ends_of(*cluster, cables.back()).second));
          REQUIRE(std::set<LinkId>(cables.begin(), cables.end()).size() == cables.size());
        }
    }
  const auto part = make_cluster(with_idle_places({3, 4}, 7));
  CHECK(names_of(*part, cables_of(*part, 2, 6)) ==
        std::vector<std::string>{"node2-node0", "node0-node3", "node3-node6"});
  CHECK(part->find_links("idle9-node0").size() == 2);
  CHECK(part->find_links("node9-node0").empty());
  // A torus's cables end at the nodes themselves.
  const auto cube = make_cluster(torus({4, 4, 4}));
  const auto names = names_of(*cube, cables_of(*cube, 0, 3 + 4 * 1 + 16 * 2));
  CHECK(names == std::vector<std::string>{"node0-node3", "node3-node7", "node7-node23", "node23-node39"});
}

TEST_CASE("fabrics: every link's name finds it again") {
  std::vector<ClusterParts> all = kAll;
  all.push_back(bare(3, Fabric::Kind::ring));
  all.back().server_nodes = 2;
  for (const ClusterParts& parts : all) {
    const auto cluster = make_cluster(parts);
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
      REQUIRE(other != l);
      REQUIRE(cluster->bandwidth(l) == cluster->bandwidth(other));
    }
  }
  const auto tree = make_cluster(fat_tree(16, 4));
  for (const char* wrong :
       {"edge0-agg2", "edge8-agg8", "agg0-core2", "agg0-core4", "edge0-core0", "agg0-agg1"})
    CHECK(tree->find_links(wrong).empty());
  const auto rails = make_cluster(rail(12, 4, 3, 3));
  for (const char* wrong :
       {"group4.rail0-spine0", "group0.rail4-spine0", "group0.rail0-spine3", "leaf0-spine0"})
    CHECK(rails->find_links(wrong).empty());
  const auto cube = make_cluster(torus({4, 4, 4}));
  for (const char* wrong : {"node0-node2", "node0-node0", "node0-node5", "node63-node64", "node0-server0"})
    CHECK(cube->find_links(wrong).empty());
  const auto flies = make_cluster(dragonfly(3, 2, 2));
  for (const char* wrong : {"router0-router0", "router0-router6", "router0-router2", "node0-node1"})
    CHECK(flies->find_links(wrong).empty());
}

TEST_CASE("fabrics: a cut in the middle carries what theory says") {
  const double nic = 25e9;
  // Fat tree: half of the pods to the cores. 16 NICs with k = 4: 8 of them at full rate; two to one: half.
  const auto first_pods = [](int edges, int aggs) {
    return [edges, aggs](const std::string& end) {
      return (end[0] == 'e' && number_in(end) < edges) || (end[0] == 'a' && number_in(end) < aggs);
    };
  };
  CHECK(cut(*make_cluster(fat_tree(16, 4)), first_pods(4, 4)) == Approx(8 * nic));
  // k = 6, two to one: six pods of 3 edge and 2 aggregation switches; three of them hold 3 x 3 x 4 NICs.
  CHECK(cut(*make_cluster(fat_tree(72, 6, 2)), first_pods(9, 6)) == Approx(36 * nic / 2));
  // Rail: two of four groups of 3 nodes with 4 NICs.
  const auto groups = [](const std::string& end) { return end[0] == 'g' && number_in(end) < 2; };
  CHECK(cut(*make_cluster(rail(12, 4, 3, 3)), groups) == Approx(2 * 3 * 4 * nic));
  CHECK(cut(*make_cluster(rail(12, 4, 3, 3, 2)), groups) == Approx(2 * 3 * 4 * nic / 2));
  // A torus of even size k in its longest dimension has 2 N / k cables; a ring has two.
  const auto lower = [](int nodes) {
    return [nodes](const std::string& end) { return number_in(end) < nodes; };
  };
  CHECK(cut(*make_cluster(bare(8, Fabric::Kind::ring)), lower(4)) == Approx(2 * nic));
  CHECK(cut(*make_cluster(torus({3, 4})), lower(6)) == Approx(2 * 12 / 4 * nic));
  CHECK(cut(*make_cluster(torus({4, 4, 4})), lower(32)) == Approx(2 * 64 / 4 * nic));
  CHECK(cut(*make_cluster(torus({4, 4, 2})), lower(16)) == Approx(16 * nic));  // no wrap-around
  // Dragonfly: every two groups are joined once, so 4 of 8 groups have 4 x 4 such cables.
  ClusterParts flies = dragonfly(8, 4, 2);
  flies.fabric.global_bandwidth = 100e9;
  CHECK(cut(*make_cluster(flies), lower(16)) == Approx(16 * 100e9));
}

TEST_CASE("fabrics: d-mod-k spreads destinations evenly") {
  // k = 8: 128 NICs, 16 core switches, 16 NICs per pod. From outside, each destination of a pod is reached
  // through a core switch and a cable of its own, the same from every source.
  const auto tree = make_cluster(fat_tree(128, 8));
  std::map<LinkId, std::set<int>> destinations;
  for (int from = 0; from < 128; ++from)
    for (int to = 0; to < 128; ++to)
      if (from / 16 != to / 16) {
        const auto cables = cables_of(*tree, from, to);
        REQUIRE(cables.size() == 4);
        destinations[cables[2]].insert(to);
        destinations[cables[3]].insert(to);
      }
  CHECK(destinations.size() == 2 * 128);
  for (const auto& [link, nodes] : destinations) CHECK(nodes.size() == 1);
  // A shift by one pod uses every cable between edge and core switches once.
  std::map<LinkId, int> loads;
  for (int from = 0; from < 128; ++from)
    for (const LinkId l : cables_of(*tree, from, (from + 16) % 128)) ++loads[l];
  CHECK(loads.size() == 4 * 128);
  for (const auto& [link, load] : loads) CHECK(load == 1);

  // Rails: every spine serves one of a group's nodes; the same shift by a group uses every uplink once.
  const auto rails = make_cluster(rail(16, 4, 4, 4));
  loads.clear();
  for (Endpoint from = 0; from < 64; ++from)
    for (const LinkId l : cables_of(*rails, from, (from + 16) % 64)) ++loads[l];
  CHECK(loads.size() == 2 * 64);
  for (const auto& [link, load] : loads) CHECK(load == 1);
}

TEST_CASE("fabrics: rails meet at the spines only") {
  const auto cluster = make_cluster(rail(8, 4, 4, 4));
  for (int nic = 0; nic < 4; ++nic)
    for (int other = 0; other < 4; ++other)
      CHECK(cables_of(*cluster, nic, 4 + other).size() == (nic == other ? 0 : 2));
  CHECK(names_of(*cluster, cables_of(*cluster, 1, 7 * 4 + 1)) ==
        std::vector<std::string>{"group0.rail1-spine0", "spine0-group1.rail1"});  // (7 + 1) modulo 4
}

TEST_CASE("fabrics: a torus loads all its cables alike under a shift of every node") {
  const auto cluster = make_cluster(torus({5, 5}));
  std::map<LinkId, int> loads;
  for (int from = 0; from < 25; ++from)
    for (int to = 0; to < 25; ++to)
      for (const LinkId l : cables_of(*cluster, from, to)) ++loads[l];
  // 25 x 25 pairs with (0 + 1 + 2 + 2 + 1) / 5 hops per dimension, over 100 directions of cables.
  CHECK(loads.size() == 100);
  for (const auto& [link, load] : loads) CHECK(load == 25 * 25 * 2 * 6 / 5 / 100);
}

TEST_CASE("fabrics: sixteen thousand devices") {
  ClusterParts parts = fat_tree(2048, 64, 1, 8);  // 64^3 / 4 = 65,536 ports, 1,024 per pod
  const auto tree = make_cluster(parts);
  CHECK(tree->devices() == 16384);
  CHECK(tree->links() == 2048 * (16 + 16) + 2 * 2 * 16384);  // as many cables in each tier as NICs
  std::vector<LinkId> links;
  std::int64_t total = 0;
  for (Endpoint from = 0; from < 16384; ++from) {
    links.clear();
    tree->route(from, (from + 1024) % 16384, -1, links);
    total += static_cast<std::int64_t>(links.size());
  }
  CHECK(total == 16384 * 6);
  CHECK(make_cluster(torus({16, 32, 32}))->links() == 16384 * (2 + 6));
}

TEST_CASE("fabrics: bad sizes are refused, those of a file at their place") {
  std::vector<ClusterParts> bad = {fat_tree(17, 4),   fat_tree(4, 5),   fat_tree(4, 0), fat_tree(9, 4, 1, 2),
                                   fat_tree(4, 4, 0), rail(4, 2, 0, 1), torus({}),      torus({4, 4})};
  bad.back().fabric.dims = {4, 3};
  bad.push_back(torus({4, 4}));
  bad.back().fabric.dims = {-4, -4};
  bad.push_back(torus({4, 4}));
  bad.back().node.nic_bandwidth = 0;
  bad.push_back(dragonfly(3, 2, 2));
  bad.back().fabric.groups = 2;
  bad.push_back(dragonfly(3, 2, 2));
  bad.back().fabric.routers_per_group = 0;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    CAPTURE(i);
    CHECK_THROWS_AS(make_cluster(bad[i]), InputError);
  }

  const std::string node =
      "[cluster]\nnodes = 12\n[cluster.node]\ndevice = \"v100\"\ndevices = 1\nnic_gbps = "
      "80\n[cluster.fabric]\n";
  struct Case {
    std::string text, place, message;
  };
  for (const Case& c :
       std::vector<Case>{{"kind = \"torus\"\n", "lab.toml:", "dims"},
                         {"kind = \"torus\"\ndims = [3, 3]\n", "lab.toml:", "3 x 3 joins 12 nodes"},
                         {"kind = \"torus\"\ndims = [3, 0]\n", "lab.toml:9:", "dims"},
                         {"kind = \"ring\"\ndims = [12]\n", "lab.toml:9:", "only with kind = \"torus\""},
                         {"kind = \"ring\"\nradix = 12\n", "lab.toml:9:", "\"fat-tree\""},
                         {"kind = \"fat-tree\"\n", "lab.toml:", "radix"},
                         {"kind = \"fat-tree\"\nradix = 7\n", "lab.toml:9:", "even"},
                         {"kind = \"fat-tree\"\nradix = 2\n", "lab.toml:", "at most 2 nodes"},
                         {"kind = \"rail\"\n", "lab.toml:", "nodes_per_leaf"},
                         {"kind = \"dragonfly\"\n", "lab.toml:", "routers_per_group"},
                         {"kind = \"dragonfly\"\ngroups = 2\nrouters_per_group = 2\nnodes_per_router = 2\n",
                          "lab.toml:", "at most 8 nodes"},
                         {"kind = \"hypercube\"\n", "lab.toml:8:", "dragonfly"}}) {
    CAPTURE(c.text);
    std::string message = "accepted";
    try {
      cluster_of(node + c.text);
    } catch (const InputError& e) {
      message = e.what();
    }
    CAPTURE(message);
    CHECK(message.rfind(c.place, 0) == 0);
    CHECK(message.find(c.message) != std::string::npos);
  }
  const auto of = [&](const std::string& text) { return cluster_of(node + text); };
  CHECK(of("kind = \"torus\"\ndims = [3, 4]\nlink_gbps = 40\n")->bandwidth(24) == Approx(5e9));
  CHECK(of("kind = \"fat-tree\"\nradix = 4\n")->fabric().radix == 4);
  // A rail switch of 8 ports without oversubscription: 4 nodes below, 4 cables above.
  CHECK(of("kind = \"rail\"\nradix = 8\n")->fabric().nodes_per_leaf == 4);
  CHECK(of("kind = \"rail\"\nradix = 8\n")->fabric().spines == 4);
  CHECK(of("kind = \"dragonfly\"\nrouters_per_group = 2\nnodes_per_router = 2\n")->fabric().groups == 3);
}
