#include "simulator/planner/collective_times.hpp"

#include <algorithm>
#include <limits>

namespace rehearse {
namespace {

constexpr std::size_t kMostPairwise = 64;

PlanOnNetwork without_links(PlanOnNetwork plan) {
  for (std::vector<StageOnNetwork>& lane : plan.lanes)
    for (StageOnNetwork& stage : lane) std::vector<LinkId>().swap(stage.links);
  return plan;
}

}  // namespace

const std::vector<PlanOnNetwork>& CollectiveTimes::plans(const Key& key, Algorithm algorithm) {
  const auto [known, fresh] = plans_.try_emplace({key, algorithm});
  if (!fresh) return known->second;
  const std::vector<Algorithm> algorithms = algorithm == Algorithm::automatic
                                                ? candidates(cluster_, key.first, options_.protocol)
                                                : std::vector<Algorithm>{algorithm};
  for (const Algorithm a : algorithms)
    known->second.push_back(
        without_links(on_network(collective_plan(a, cluster_, key.first, key.second), cluster_, key.first)));
  return known->second;
}

// Returns one half of a ring's all-reduce.
const PlanOnNetwork& CollectiveTimes::ring(const Key& key, CollectiveKind kind) {
  const auto [known, fresh] = rings_.try_emplace({key, kind});
  if (!fresh) return known->second;
  known->second = plans(key, Algorithm::ring).front();
  for (std::vector<StageOnNetwork>& lane : known->second.lanes)
    for (StageOnNetwork& stage : lane) {
      stage.kind = kind == CollectiveKind::all_gather ? Stage::Kind::all_gather : Stage::Kind::reduce_scatter;
      stage.share.edge /= 2;
    }
  return known->second;
}

const CollectiveTimes::Pairs& CollectiveTimes::pairs(const Key& key) {
  const auto [known, fresh] = pairs_.try_emplace(key);
  if (!fresh) return known->second;
  Pairs& pairs = known->second;
  const std::vector<Endpoint>& members = key.first;
  pairs.shape = plans(key, Algorithm::ring).front().lanes.front().front().shape;
  std::map<LinkId, int> crossed;
  std::vector<LinkId> links;
  for (const Endpoint from : members) {
    if (members.size() > kMostPairwise && cluster_.node_of(from) != cluster_.node_of(members.front()))
      continue;
    for (const Endpoint to : members) {
      if (from == to) continue;
      links.clear();
      cluster_.route(from, to, -1, links);
      for (const LinkId link : links) ++crossed[link];
    }
  }
  for (const auto& [link, times] : crossed)
    pairs.inverse_bandwidth = std::max(pairs.inverse_bandwidth, times / cluster_.bandwidth(link));
  if (pairs.inverse_bandwidth > 0)
    pairs.shape.ring_bandwidth = static_cast<double>(members.size() - 1) / pairs.inverse_bandwidth;
  return pairs;
}

double CollectiveTimes::alone_s(CollectiveKind kind, Algorithm algorithm, int channels,
                                const std::vector<Endpoint>& members, double bytes) {
  if (members.size() < 2 || bytes <= 0) return 0;
  const Key key{members, channels};
  if (kind == CollectiveKind::all_to_all) {
    const Pairs& pairs = this->pairs(key);
    const TransferCost cost = ring_cost(kind, bytes, pairs.shape, options_.protocol);
    return cost.startup_s + cost.steps * cost.step_latency_s + cost.ramp_s +
           bytes / cost.efficiency * pairs.inverse_bandwidth;
  }
  if (kind == CollectiveKind::all_reduce) {
    double least_s = std::numeric_limits<double>::infinity();
    for (const PlanOnNetwork& plan : plans(key, algorithm))
      least_s = std::min(least_s, time_alone_s(plan, bytes, options_.protocol, options_.chunk_bytes));
    return least_s;
  }
  return time_alone_s(ring(key, kind), bytes, options_.protocol, options_.chunk_bytes);
}

DeviceLoad CollectiveTimes::ring_load(CollectiveKind kind, int channels, const std::vector<Endpoint>& members,
                                      double bytes, double seconds) {
  if (members.size() < 2) return {};
  Collective collective;
  collective.kind = kind;
  return load_of(collective, bytes, ring({members, channels}, kind).lanes.front().front().shape, seconds);
}

double CollectiveTimes::message_s(Endpoint from, Endpoint to, double bytes) {
  if (from == to) return 0;
  const PlanOnNetwork& pair = plans({{from, to}, 1}, Algorithm::ring).front();
  const StageOnNetwork& stage = pair.lanes.front().front();
  const TransferCost cost = message_cost(bytes, stage.shape, options_.protocol);
  std::vector<LinkId> links;
  cluster_.route(from, to, -1, links);
  double inverse_bandwidth = 0;
  for (const LinkId link : links)
    inverse_bandwidth = std::max(inverse_bandwidth, 1 / cluster_.bandwidth(link));
  return cost.startup_s + cost.steps * cost.step_latency_s + bytes / cost.efficiency * inverse_bandwidth;
}

}  // namespace rehearse
