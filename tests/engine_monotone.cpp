// Tests that more bandwidth or less oversubscription never makes communication slower, on fabrics of every
// kind.
//
// Everything else stays fixed: leaves keep their number of nodes (which would otherwise follow from a radix);
// fat trees, whose radix is divided according to the oversubscription and the cables' bandwidth, keep both
// ratios; and the number of spines is given where link_bandwidth changes.
#include <algorithm>
#include <limits>
#include <random>

#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

struct Step {
  const char* what;
  std::vector<double> values;  // from slow to fast
  void (*set)(ClusterParts&, double);
};

const Step kNics = {
    "NICs", {0.5e9, 1e9, 1.5e9}, [](ClusterParts& p, double value) { p.node.nic_bandwidth = value; }};
const Step kOversubscription = {"oversubscription",
                                {9, 5, 4, 3, 2.5, 2, 1.5, 1},
                                [](ClusterParts& p, double value) { p.fabric.oversubscription = value; }};
const Step kCables = {
    "cables", {0.3e9, 0.7e9, 2e9}, [](ClusterParts& p, double value) { p.fabric.link_bandwidth = value; }};
const Step kGlobalCables = {"cables between groups", {0.3e9, 0.7e9, 2e9}, [](ClusterParts& p, double value) {
                              p.fabric.global_bandwidth = value;
                            }};
const Step kNvlinks = {
    "NVLinks", {1e9, 3e9, 10e9}, [](ClusterParts& p, double value) { p.node.device_bandwidth = value; }};
// Fixes both sides of a leaf, as the reader does: the oversubscription ratio follows.
const Step kGivenSpines = {"cables to given spines", {0.3e9, 0.7e9, 2e9}, [](ClusterParts& p, double value) {
                             p.fabric.spines = 3;
                             p.fabric.oversubscription =
                                 p.fabric.nodes_per_leaf * p.node.nic_bandwidth / (3 * value);
                           }};

struct Case {
  ClusterParts parts;
  std::vector<Step> steps;
};

ClusterParts of_kind(int nodes, Fabric::Kind kind) {
  ClusterParts parts = star(nodes, kBandwidth, 0);
  parts.fabric.kind = kind;
  return parts;
}

std::vector<Case> cases() {
  using enum Fabric::Kind;
  std::vector<Case> all = {{of_kind(12, single_switch), {kNics}}};
  for (const int per_leaf : {4, 6, 7})
    for (const auto routing : {Fabric::Routing::d_mod_k, Fabric::Routing::ecmp_hash}) {
      if (routing == Fabric::Routing::ecmp_hash && per_leaf != 6) continue;
      ClusterParts parts = of_kind(18, leaf_spine);
      parts.fabric.nodes_per_leaf = per_leaf;
      parts.fabric.routing = routing;
      all.push_back({parts, {kNics, kOversubscription, kGivenSpines}});
      parts.fabric.link_bandwidth = 0.8e9;
      all.push_back({parts, {kNics, kOversubscription}});
    }
  ClusterParts rails = of_kind(6, rail);
  rails.node.devices = rails.node.nics = 2;
  rails.node.interconnect = Node::Interconnect::nvswitch;
  rails.node.device_bandwidth = 3e9;
  rails.fabric.nodes_per_leaf = 3;
  all.push_back({rails, {kNics, kOversubscription, kNvlinks, kGivenSpines}});
  ClusterParts tree = of_kind(16, fat_tree);
  tree.fabric.radix = 6;
  tree.fabric.oversubscription = 2;
  all.push_back({tree, {kNics}});
  all.push_back({of_kind(7, ring), {kNics, kCables}});
  ClusterParts grid = of_kind(12, torus);
  grid.fabric.dims = {4, 3};
  all.push_back({grid, {kNics, kCables}});
  ClusterParts groups = of_kind(12, dragonfly);
  groups.fabric.routers_per_group = groups.fabric.nodes_per_router = 2;
  all.push_back({groups, {kNics, kCables, kGlobalCables}});
  ClusterParts graph = of_kind(4, links);
  graph.graph = {
      {"node0", "a", 1e9}, {"node1", "a", 1e9}, {"node2", "b", 1e9}, {"node3", "b", 1e9}, {"a", "b", 1e9}};
  all.push_back(
      {graph, {kNics, {"the link in the middle", {0.2e9, 1e9, 1.5e9, 3e9}, [](ClusterParts& p, double value) {
                         p.graph.back().bandwidth = value;
                       }}}});
  return all;
}

// Returns a schedule with one op on `n` ranks, which all start it at the same time.
Schedule of_op(int n, Op op) {
  Schedule s;
  s.roles = {role("worker", {{"data", n}})};
  Program p;
  p.name = "worker";
  p.streams = {"network"};
  p.ops = {std::move(op)};
  s.programs = {p};
  return s;
}

std::vector<Schedule> patterns(int n) {
  const double bytes = 1e8;
  std::vector<Schedule> all;
  for (const auto algorithm : {Algorithm::ring, Algorithm::halving_doubling, Algorithm::recursive_doubling}) {
    Op op = all_reduce("all-reduce", 0, {{{0}}}, bytes);
    op.collective.algorithm = algorithm;
    all.push_back(of_op(n, op));
  }
  Op pairs = all_reduce("all-to-all", 0, {{{0}}}, bytes);
  pairs.collective.kind = CollectiveKind::all_to_all;
  all.push_back(of_op(n, pairs));
  all.push_back(of_op(n, exchange("shift", 0,
                                  {send(Peer::along(0, n / 2, true), bytes),
                                   receive(Peer::along(0, -(n / 2), true), bytes)})));
  return all;
}

}  // namespace

TEST_CASE("more bandwidth or less oversubscription is never slower", "[release]") {
  std::mt19937 random(1);
  for (const Case& c : cases()) {
    const int devices = c.parts.nodes * c.parts.node.devices;
    std::vector<int> endpoints = first_endpoints(devices);
    for (const bool shuffled : {false, true}) {
      if (shuffled) std::shuffle(endpoints.begin(), endpoints.end(), random);
      const int n = shuffled ? devices * 2 / 3 : devices;  // sparse patterns collide in unexpected ways
      for (const Schedule& pattern : patterns(n))
        for (const Step& step : c.steps) {
          double before_s = std::numeric_limits<double>::infinity(), before = 0;
          for (const double value : step.values) {
            ClusterParts parts = c.parts;
            step.set(parts, value);
            const double time_s = run_time_s(one_job(pattern, {endpoints.begin(), endpoints.begin() + n}),
                                             parts, ideal(Fidelity::automatic));
            CAPTURE(
                static_cast<int>(parts.fabric.kind), parts.fabric.nodes_per_leaf, parts.fabric.link_bandwidth,
                static_cast<int>(parts.fabric.routing), shuffled, pattern.programs[0].ops[0].name,
                static_cast<int>(pattern.programs[0].ops[0].collective.algorithm), step.what, before, value);
            CHECK(time_s <= before_s * (1 + 1e-9));
            before_s = time_s;
            before = value;
          }
        }
    }
  }
}
