#include "simulator/collectives/connections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "models/text/error.hpp"

namespace rehearse {
namespace {

// Returns the edges of a phase in the order of their first messages.
std::vector<PlanEdge> edges_in_order(const Stage& stage) {
  if (stage.kind != Stage::Kind::trees) return stage_edges(stage);
  std::vector<PlanEdge> edges;
  for (std::size_t t = 0; t < stage.parents.size(); ++t) {
    const std::vector<int>& parents = stage.parents[t];
    const std::vector<int> order = farthest_first(parents);
    for (const int m : order) edges.push_back({m, parents[m], static_cast<int>(t)});
    for (auto m = order.rbegin(); m != order.rend(); ++m)
      edges.push_back({parents[*m], *m, static_cast<int>(t)});
  }
  return edges;
}

int relay_of(const Stage& stage, int from, int to) {
  for (const std::array<int, 3>& hop : stage.relays)
    if (hop[0] == from && hop[2] == to) return hop[1];
  return -1;
}

// Adds a lane's connections. Phases of a lane that use the same edge share its connection.
void add_stages(const Lane& lane, int number, std::vector<Connection>& connections) {
  std::set<std::tuple<int, int, int>> known;
  for (const Stage& stage : lane.stages)
    for (const PlanEdge& edge : edges_in_order(stage))
      if (lane.stages.size() == 1 || known.emplace(edge.tree, edge.from, edge.to).second)
        connections.push_back({edge.from, edge.to, stage.rail, number, edge.tree, edge.through});
}

}  // namespace

const std::vector<int>& ring_of(const Lane& lane) {
  if (lane.stages.size() != 1 || lane.stages.front().kind != Stage::Kind::all_reduce ||
      lane.stages.front().groups.size() != 1)
    throw RunError(
        fmt::format("a collective other than an all-reduce has {} steps and {} groups in the first; allowed: "
                    "one step on one ring, as with algorithm \"ring\"",
                    lane.stages.size(), lane.stages.empty() ? 0 : lane.stages.front().groups.size()));
  return lane.stages.front().groups.front();
}

std::vector<int> chain_of(const Lane& lane, Course course) {
  std::vector<int> chain = ring_of(lane);
  const auto root = std::find(chain.begin(), chain.end(), 0);
  std::rotate(chain.begin(), course == Course::to_root ? root + 1 : root, chain.end());
  return chain;
}

std::vector<int> farthest_first(const std::vector<int>& parents) {
  std::vector<int> depth(parents.size(), 0), order;
  for (std::size_t m = 0; m < parents.size(); ++m) {
    for (int up = parents[m]; up >= 0; up = parents[up]) ++depth[m];
    if (parents[m] >= 0) order.push_back(static_cast<int>(m));
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return depth[a] > depth[b]; });
  return order;
}

std::vector<Connection> pairs_from(int member, int members) {
  std::vector<Connection> connections;
  for (int far = 1; far < members; ++far) connections.push_back({member, (member + far) % members});
  return connections;
}

std::vector<Connection> connections_of(Course course, const CollectivePlan& plan) {
  const CollectivePlan messages = in_messages(plan);
  std::vector<Connection> connections;
  if (course == Course::pairs) {
    for (int member = 0; member < messages.members; ++member) {
      const std::vector<Connection> own = pairs_from(member, messages.members);
      connections.insert(connections.end(), own.begin(), own.end());
    }
    return connections;
  }
  for (std::size_t l = 0; l < messages.lanes.size(); ++l) {
    const Lane& lane = messages.lanes[l];
    const int number = static_cast<int>(l);
    if (course == Course::ring) {
      add_stages(lane, number, connections);
      continue;
    }
    const std::vector<int> chain = chain_of(lane, course);
    for (std::size_t i = 0; i + 1 < chain.size(); ++i)
      connections.push_back({chain[i], chain[i + 1], lane.stages.front().rail, number, 0,
                             relay_of(lane.stages.front(), chain[i], chain[i + 1])});
  }
  return connections;
}

std::vector<double> connection_shares(CollectiveKind kind, const CollectivePlan& plan) {
  const CollectivePlan messages = in_messages(plan);
  const std::vector<Connection> connections = connections_of(course_of(kind), messages);
  std::vector<double> shares(connections.size(), 1);
  if (kind == CollectiveKind::all_reduce) {
    std::map<std::tuple<int, int, int, int>, double> sums;  // by lane, tree, sender and receiver
    for (std::size_t l = 0; l < messages.lanes.size(); ++l) {
      const Lane& lane = messages.lanes[l];
      const std::vector<StageShare> of_stage = stage_shares(lane);
      for (std::size_t s = 0; s < lane.stages.size(); ++s)
        for (const PlanEdge& edge : stage_edges(lane.stages[s]))
          sums[{static_cast<int>(l), edge.tree, edge.from, edge.to}] += of_stage[s].edge;
    }
    for (std::size_t c = 0; c < connections.size(); ++c)
      shares[c] = sums[{connections[c].lane, connections[c].tree, connections[c].from, connections[c].to}];
    return shares;
  }
  if (course_of(kind) == Course::pairs) return shares;
  const double n = messages.members, scattered = course_of(kind) == Course::ring ? (n - 1) / n : 1;
  for (std::size_t c = 0; c < connections.size(); ++c)
    shares[c] = scattered * messages.lanes[connections[c].lane].share;
  return shares;
}

}  // namespace rehearse
