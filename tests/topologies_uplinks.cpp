// Checks that a leaf's uplinks are complete cables, and that destinations which share one of many cables also
// share one of fewer cables.
#include "topologies/uplinks.hpp"

#include <map>
#include <set>

#include "tests/catch.hpp"
#include "tests/topologies_cases.hpp"

using namespace rehearse;

namespace {

std::int64_t spine_of(const Uplinks& uplinks, std::int64_t port) {
  return (uplinks.fold > 0 ? port % uplinks.fold : port) % uplinks.spines;
}

ClusterParts lab(Fabric::Kind kind, int nics, int nodes_per_leaf, double ratio, double link_bandwidth) {
  ClusterParts parts = leaf_spine(3 * nodes_per_leaf, nics, nics, nodes_per_leaf, 0, ratio);
  parts.fabric.kind = kind;
  parts.fabric.link_bandwidth = link_bandwidth;
  return parts;
}

}  // namespace

TEST_CASE("uplinks: destinations that share a cable share one of fewer cables, too") {
  for (const int ports : {1, 2, 3, 4, 6, 7, 8, 10, 12, 15, 20, 24, 35, 36, 64, 97, 160}) {
    CAPTURE(ports);
    const std::vector<Uplinks> all = nested_uplinks(ports);
    REQUIRE(all.front().spines == 1);
    for (std::size_t i = 1; i < all.size() && all[i].spines <= 4 * ports; ++i) {
      const Uplinks &fewer = all[i - 1], &more = all[i];
      CAPTURE(fewer.spines, more.spines);
      REQUIRE(more.spines > fewer.spines);
      REQUIRE(more.spines <= 2 * fewer.spines);
      REQUIRE(more.ports_per_cable < fewer.ports_per_cable);
      std::map<std::int64_t, std::set<std::int64_t>> joined;  // spines of `fewer`, by spine of `more`
      std::map<std::int64_t, int> below;                      // ports of one leaf, by spine of `more`
      for (std::int64_t port = 0; port < 8 * ports; ++port) {
        joined[spine_of(more, port)].insert(spine_of(fewer, port));
        if (port < ports) ++below[spine_of(more, port)];
      }
      for (const auto& [spine, spines] : joined) REQUIRE(spines.size() == 1);
      if (more.spines > ports) continue;
      int fullest = 0;
      for (const auto& [spine, count] : below) fullest = std::max(fullest, count);
      REQUIRE(more.ports_per_cable == fullest);
      REQUIRE(static_cast<int>(below.size()) == more.spines);
    }
  }
}

TEST_CASE("uplinks: each is a whole cable, and they are oversubscribed no more than asked for") {
  const double nic = 25e9;
  for (const Fabric::Kind kind : {Fabric::Kind::leaf_spine, Fabric::Kind::rail})
    for (const int nics : {1, 2})
      for (const int nodes_per_leaf : {1, 3, 4, 5, 7})
        for (const double link : {0.0, 10e9, 25e9, 40e9, 100e9}) {
          int spines = 1 << 30;
          for (const double ratio : {0.3, 0.5, 1.0, 1.4, 2.0, 2.5, 3.0, 4.0, 7.0, 8.0, 30.0}) {
            CAPTURE(static_cast<int>(kind), nics, nodes_per_leaf, link, ratio);
            const auto cluster = make_cluster(lab(kind, nics, nodes_per_leaf, ratio, link));
            const double cable = link > 0 ? link : nic;
            const LinkId last = cluster->links() - 1;
            REQUIRE(cluster->bandwidth(last) == cable);
            const Fabric& fabric = cluster->fabric();
            REQUIRE(fabric.asked_oversubscription == ratio);
            REQUIRE(fabric.oversubscription <= ratio * (1 + 1e-9));
            const int ports = nodes_per_leaf * (kind == Fabric::Kind::rail ? 1 : nics);
            REQUIRE(ports * nic / (fabric.spines * cable) <= fabric.oversubscription * (1 + 1e-9));
            REQUIRE(fabric.spines <= spines);
            spines = fabric.spines;
            const bool exact = std::abs(fabric.oversubscription - ratio) <= 1e-9 * ratio;
            REQUIRE(oversubscription_note(*cluster).empty() == exact);
          }
        }
}

TEST_CASE("uplinks: given spines keep the oversubscription that is given") {
  const auto cluster = make_cluster(leaf_spine(8, 1, 1, 4, 3, 2));
  CHECK(cluster->fabric().spines == 3);
  CHECK(cluster->fabric().oversubscription == 2);
  CHECK(cluster->bandwidth(cluster->find_links("leaf1-spine2").at(0)) == Approx(4 * 25e9 / 2 / 3));
  CHECK(oversubscription_note(*cluster).empty());
}

TEST_CASE("uplinks: a note says what whole cables give instead") {
  CHECK(oversubscription_note(*make_cluster(lab(Fabric::Kind::leaf_spine, 1, 4, 3, 0))) ==
        "Oversubscription 3 would need a fraction of a cable. 2 uplinks of 200 Gbit/s for 4 NICs of 200 "
        "Gbit/s give 2 to 1. Whole cables give 1, 2, 4 (or set spines and link_gbps).");
  ClusterParts tree = gpu_nodes(16, 1, 1);
  tree.fabric.kind = Fabric::Kind::fat_tree;
  tree.fabric.radix = 6;
  tree.fabric.oversubscription = 3;
  const auto cluster = make_cluster(tree);
  CHECK(cluster->bandwidth(cluster->find_links("edge0-agg0").at(0)) == 25e9);
  CHECK(cluster->fabric().oversubscription == 2);
  CHECK(oversubscription_note(*cluster) ==
        "Oversubscription 3 would need a fraction of a cable. An edge switch of 6 ports has 4 below and 2 "
        "above, "
        "all "
        "of 200 Gbit/s: 2 to 1.");
}

TEST_CASE("uplinks: a leaf has no more ports than its switch") {
  for (const int radix : {5, 8, 18, 36, 40, 64})
    for (const double ratio : {0.5, 1.0, 1.5, 2.0, 3.0, 5.0}) {
      CAPTURE(radix, ratio);
      const auto cluster = cluster_of(
          "[cluster]\nnodes = 4\n[cluster.node]\ndevice = \"v100\"\ndevices = 1\nnic_gbps = 80\n"
          "[cluster.fabric]\nkind = \"leaf-spine\"\nradix = " +
          std::to_string(radix) + "\noversubscription = " + std::to_string(ratio) + "\n");
      CHECK(cluster->fabric().nodes_per_leaf + cluster->fabric().spines <= radix);
      CHECK(cluster->fabric().oversubscription <= ratio * (1 + 1e-9));
    }
}
