// Checks the coarsest equitable partition on graphs whose classes are known.
#include "simulator/schedule/partition.hpp"

#include "tests/catch.hpp"

using namespace rehearse;

namespace {

Hypergraph path(int nodes, bool closed) {
  Hypergraph g;
  g.node_colour.assign(nodes, 1);
  for (int i = 0; i + 1 < nodes + (closed ? 1 : 0); ++i) {
    g.add_edge(1);
    g.touch(i, 0);
    g.touch((i + 1) % nodes, 1);
  }
  return g;
}

// Returns whether the partition is equitable: all nodes of a class touch the same number of edges of each
// class with each label, and vice versa.
bool equitable(const Hypergraph& g, const Partition& p) {
  using Counts = std::vector<std::vector<int>>;
  const auto fits = [](std::vector<Counts>& seen, int of, const Counts& counts) {
    if (seen[of].empty()) seen[of] = counts;
    return seen[of] == counts;
  };
  std::vector<Counts> nodes(g.node_colour.size(), Counts(p.edge_classes, std::vector<int>(8, 0)));
  std::vector<Counts> seen_edges(p.edge_classes), seen_nodes(p.node_classes);
  for (std::size_t e = 0; e < g.edge_colour.size(); ++e) {
    Counts counts(p.node_classes, std::vector<int>(8, 0));
    for (auto t = g.first_touch[e]; t < g.first_touch[e + 1]; ++t) {
      ++counts[p.node_class[g.touches[t].node]][g.touches[t].label];
      ++nodes[g.touches[t].node][p.edge_class[e]][g.touches[t].label];
    }
    if (!fits(seen_edges, p.edge_class[e], counts)) return false;
  }
  for (std::size_t n = 0; n < nodes.size(); ++n)
    if (!fits(seen_nodes, p.node_class[n], nodes[n])) return false;
  return true;
}

}  // namespace

TEST_CASE("a ring is one class, a directed path has as many as nodes, a mark in a ring tells all apart") {
  struct Case {
    int nodes;
    bool closed, marked;
    int node_classes, edge_classes;
  };
  const Case cases[] = {{8, true, false, 1, 1}, {8, false, false, 8, 7},  {8, true, true, 8, 8},
                        {2, true, false, 1, 1}, {300, true, false, 1, 1}, {300, true, true, 300, 300}};
  for (const Case& c : cases) {
    CAPTURE(c.nodes, c.closed, c.marked);
    Hypergraph g = path(c.nodes, c.closed);
    if (c.marked) g.node_colour[c.nodes / 2] = 2;
    const Partition p = coarsest_equitable_partition(g);
    CHECK(p.node_classes == c.node_classes);
    CHECK(p.edge_classes == c.edge_classes);
    CHECK(equitable(g, p));
  }
}

TEST_CASE("a mark in a ring without direction folds it in half") {
  Hypergraph g;
  const int n = 10;
  g.node_colour.assign(n, 1);
  g.node_colour[0] = 2;
  for (int i = 0; i < n; ++i) {
    g.add_edge(1);
    g.touch(i, 0);
    g.touch((i + 1) % n, 0);
  }
  const Partition p = coarsest_equitable_partition(g);
  CHECK(p.node_classes == n / 2 + 1);
  CHECK(p.edge_classes == n / 2);
  CHECK(equitable(g, p));
}

TEST_CASE("one edge over everyone: two leaves of unlike size") {
  Hypergraph g;
  g.node_colour.assign(7, 1);
  g.add_edge(1);
  for (int i = 0; i < 7; ++i) g.touch(i, 0);
  for (int leaf = 0; leaf < 2; ++leaf) {
    g.add_edge(2);
    for (int i = leaf * 3; i < (leaf == 0 ? 3 : 7); ++i) g.touch(i, 0);
  }
  const Partition p = coarsest_equitable_partition(g);
  CHECK(p.node_classes == 2);
  CHECK(p.edge_classes == 3);
  CHECK(equitable(g, p));
  CHECK(discrete_partition(g).node_classes == 7);
}
