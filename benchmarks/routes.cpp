// Measures how fast routes are found in a k-ary fat tree of 2,048 nodes with eight GPUs and eight NICs each,
// that is, 16,384 devices.
#include <benchmark/benchmark.h>

#include <numeric>

#include "topologies/cluster.hpp"

namespace {

using namespace rehearse;

constexpr int kNodes = 2048, kInNode = 8, kStages = 16, kData = kNodes * kInNode / kStages;

std::shared_ptr<const Cluster> fat_tree() {
  ClusterParts parts;
  parts.name = "fat tree";
  parts.node.device = device_preset("h100");
  parts.node.devices = parts.node.nics = kInNode;
  parts.node.interconnect = Node::Interconnect::nvswitch;
  parts.node.device_bandwidth = 450e9;
  parts.node.nic_bandwidth = 50e9;
  parts.fabric.kind = Fabric::Kind::fat_tree;
  parts.fabric.radix = 64;
  parts.nodes = kNodes;
  return make_cluster(parts);
}

// Finds the routes of the ring all-reduces of all 16 stages, each over 1,024 ranks with a channel per NIC,
// and of the transfers between neighbouring stages in both directions. Data parallelism is innermost, as in
// the scenarios.
std::int64_t data_and_pipeline(const Cluster& cluster, std::vector<LinkId>& links) {
  std::int64_t routes = 0, crossed = 0;
  const auto route = [&](Endpoint from, Endpoint to, int rail) {
    links.clear();
    cluster.route(from, to, rail, links);
    crossed += static_cast<std::int64_t>(links.size());
    ++routes;
  };
  std::vector<Endpoint> members(kData);
  for (int stage = 0; stage < kStages; ++stage) {
    std::iota(members.begin(), members.end(), stage * kData);
    const Rings rings = ring_orders(cluster, members, kInNode);
    for (std::size_t c = 0; c < rings.orders.size(); ++c) {
      const std::vector<Endpoint>& order = rings.orders[c];
      for (std::size_t i = 0; i < order.size(); ++i)
        route(order[i], order[(i + 1) % order.size()], rings.rails[c]);
    }
    for (const Endpoint e : members) {
      if (stage + 1 == kStages) continue;
      route(e, e + kData, -1);
      route(e + kData, e, -1);
    }
  }
  benchmark::DoNotOptimize(crossed);
  return routes;
}

// Finds the routes of all pairs of 1,024 ranks on every second node in an eighth of the cluster.
std::int64_t all_to_all(const Cluster& cluster, std::vector<LinkId>& links) {
  std::int64_t crossed = 0;
  const auto member = [](int i) { return i / kInNode * 2 * kInNode + i % kInNode; };
  for (int a = 0; a < kData; ++a)
    for (int b = 0; b < kData; ++b) {
      if (a == b) continue;
      links.clear();
      cluster.route(member(a), member(b), -1, links);
      crossed += static_cast<std::int64_t>(links.size());
    }
  benchmark::DoNotOptimize(crossed);
  return std::int64_t{kData} * (kData - 1);
}

template <typename Routes>
void time_routes(benchmark::State& state, Routes routes) {
  const auto cluster = fat_tree();
  std::vector<LinkId> links;
  std::int64_t count = 0;
  for ([[maybe_unused]] auto iteration : state) count += routes(*cluster, links);
  state.SetItemsProcessed(count);
}

void DataAndPipeline(benchmark::State& state) {
  time_routes(state, data_and_pipeline);
}

void AllToAll(benchmark::State& state) {
  time_routes(state, all_to_all);
}

void WholeStep(benchmark::State& state) {
  time_routes(state, [](const Cluster& cluster, std::vector<LinkId>& links) {
    return data_and_pipeline(cluster, links) + all_to_all(cluster, links);
  });
}

BENCHMARK(DataAndPipeline)->Unit(benchmark::kMillisecond);
BENCHMARK(AllToAll)->Unit(benchmark::kMillisecond);
BENCHMARK(WholeStep)->Unit(benchmark::kMillisecond);

}  // namespace
