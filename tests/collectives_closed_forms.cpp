// Tests the closed forms of collectives (bytes on each connection, number of sequential steps) against their
// message tables.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/collectives/cost.hpp"
#include "simulator/collectives/message_table.hpp"
#include "tests/catch.hpp"
#include "tests/collectives_clusters.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr double kExact = 1e-12;
// Divisible into whole elements for 2 to 9 or 16 members, 4 lanes and 2 trees, even if each share is cut into
// 2 or 3.
constexpr std::int64_t kElements = 5040LL * 16 * 16 * 8 * 6;

const char* name(Algorithm a) {
  return kAlgorithmNames[static_cast<std::size_t>(a)].data();
}
const char* name(CollectiveKind k) {
  return kCollectiveNames[static_cast<std::size_t>(k)].data();
}

struct MemberGroup {
  std::string what;
  std::shared_ptr<const Cluster> cluster;
  std::vector<Endpoint> members;
};

// Returns groups of n members: one per node, and on nodes of 8 devices and 4 NICs, in rank order, in
// alternating order and in its reverse.
std::vector<MemberGroup> groups_of(int n) {
  std::vector<MemberGroup> groups;
  const auto star = make_cluster(star_of(n));
  groups.push_back({"star", star, all_devices(*star)});
  const auto nodes = make_cluster(dgx_like(2));
  std::vector<Endpoint> members;
  for (int i = 0; i < n; ++i) members.push_back(i);
  groups.push_back({"a node after the other", nodes, members});
  for (int i = 0; i < n; ++i) members[i] = i % 2 * 8 + i / 2;
  groups.push_back({"nodes in turn", nodes, members});
  std::reverse(members.begin(), members.end());
  groups.push_back({"nodes in turn, last first", nodes, members});
  return groups;
}

std::vector<double> sent_on(const MessageTable& table) {
  std::vector<double> sent(table.connections.size(), 0);
  for (const MessageTable::Message& m : table.messages)
    sent[m.connection] += static_cast<double>(m.end - m.begin);
  return sent;
}

// Returns for each lane the length of its longest chain of dependent messages.
std::vector<int> longest_chains(const MessageTable& table, std::size_t lanes) {
  std::vector<int> longest(lanes, 0), length(table.messages.size(), 1);
  for (std::size_t m = 0; m < table.messages.size(); ++m) {
    for (std::int64_t k = table.first_needed[m]; k < table.first_needed[m + 1]; ++k)
      length[m] = std::max(length[m], length[table.needed[k]] + 1);
    int& lane = longest[table.messages[m].lane];
    lane = std::max(lane, length[m]);
  }
  return longest;
}

void check_connections(CollectiveKind kind, const CollectivePlan& plan, Cut cut) {
  const MessageTable table = message_table(kind, plan, kElements, cut);
  const std::vector<Connection> connections = connections_of(course_of(kind), plan);
  const std::vector<double> sent = sent_on(table), shares = connection_shares(kind, plan);
  REQUIRE(table.connections.size() == connections.size());
  REQUIRE(shares.size() == connections.size());
  std::vector<int> used;  // ordered by first message
  for (const MessageTable::Message& m : table.messages)
    if (std::find(used.begin(), used.end(), m.connection) == used.end()) used.push_back(m.connection);
  for (std::size_t c = 0; c < connections.size(); ++c) {
    CAPTURE(c, connections[c].from, connections[c].to, connections[c].lane);
    CHECK(sent[c] == Approx(shares[c] * static_cast<double>(kElements)).epsilon(kExact));
    const Connection& own = table.connections[c];
    CHECK(std::tie(own.from, own.to, own.rail, own.lane, own.tree) ==
          std::tie(connections[c].from, connections[c].to, connections[c].rail, connections[c].lane,
                   connections[c].tree));
  }
  CHECK(used.size() == connections.size());
}

// Checks an all-reduce's messages against its collective schedule: the bytes on each edge in each part of the
// schedule, and the number of sequential steps.
void check_stages(const CollectivePlan& plan, const MemberGroup& group) {
  const double bytes = static_cast<double>(kElements);
  const MessageTable table = message_table(CollectiveKind::all_reduce, plan, kElements, {});
  const PlanOnNetwork on = on_network(plan, *group.cluster, group.members);
  std::map<std::tuple<int, int, int>, double> sent;  // by lane, part of the schedule, connection
  for (const MessageTable::Message& m : table.messages)
    sent[{m.lane, m.stage, m.connection}] += static_cast<double>(m.end - m.begin);
  std::size_t edges = 0;
  std::vector<int> steps;
  for (const std::vector<StageOnNetwork>& lane : on.lanes) {
    int& sum = steps.emplace_back(0);
    for (const StageOnNetwork& stage : lane) {
      edges += static_cast<std::size_t>(stage.edges);
      sum += stage.steps;
    }
  }
  CHECK(sent.size() == edges);
  for (const auto& [where, of_edge] : sent) {
    const StageOnNetwork& stage = on.lanes[std::get<0>(where)][std::get<1>(where)];
    CHECK(
        of_edge ==
        Approx(stage_cost(plan.algorithm, stage, bytes, Protocol::ideal, 0).bytes_per_edge).epsilon(kExact));
  }
  // A tree counts as its longest path up and down, in edges.
  CHECK(longest_chains(table, plan.lanes.size()) == steps);
  CHECK(message_count(plan, bytes, {}) == static_cast<double>(table.messages.size()));
}

}  // namespace

TEST_CASE("all-reduces send on each connection, and step by step, what their closed forms say") {
  const auto check = [](Algorithm algorithm, const MemberGroup& group, int channels) {
    CAPTURE(name(algorithm), group.what, group.members.size(), channels);
    const CollectivePlan plan = collective_plan(algorithm, *group.cluster, group.members, channels);
    for (const Cut cut : {Cut{}, Cut{kElements / 64, kElements / 32}})
      check_connections(CollectiveKind::all_reduce, plan, cut);
    check_stages(plan, group);
  };
  int hierarchical_on_nodes = 0;
  for (const int n : {2, 3, 4, 5, 6, 7, 8, 9, 16})
    for (const MemberGroup& group : groups_of(n))
      for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling,
                                        Algorithm::recursive_doubling, Algorithm::hierarchical}) {
        if (!misfit(algorithm, *group.cluster, group.members).empty()) continue;
        hierarchical_on_nodes += algorithm == Algorithm::hierarchical && group.what != "star" ? 1 : 0;
        for (const int channels : {1, 0}) check(algorithm, group, channels);
      }
  CHECK(hierarchical_on_nodes > 9);
  for (const std::vector<int>& dims : {std::vector<int>{2},
                                       {3},
                                       {4},
                                       {5},
                                       {6},
                                       {7},
                                       {8},
                                       {9},
                                       {2, 2},
                                       {3, 2},
                                       {2, 4},
                                       {3, 3},
                                       {4, 4},
                                       {2, 2, 2}}) {
    const auto torus = make_cluster(torus_of(dims));
    check(Algorithm::torus, {"torus", torus, all_devices(*torus)}, 0);
  }
  const auto wide = make_cluster(torus_of({2, 3}, 2));
  check(Algorithm::torus, {"torus of nodes of two", wide, all_devices(*wide)}, 0);
}

TEST_CASE("all other collectives send on each connection, and step by step, what their closed forms say") {
  using enum CollectiveKind;
  for (const int n : {2, 3, 4, 5, 6, 7, 8, 9, 16})
    for (const MemberGroup& group : groups_of(n))
      for (const CollectiveKind kind :
           {all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all})
        for (const int channels : {1, 0}) {
          CAPTURE(name(kind), group.what, n, channels);
          const CollectivePlan plan =
              collective_plan(Algorithm::ring, *group.cluster, group.members, channels);
          for (const Cut cut : {Cut{}, Cut{kElements / 64, kElements / 32}})
            check_connections(kind, plan, cut);

          TransferShape shape;
          shape.ranks = n;
          shape.channels = static_cast<int>(plan.lanes.size());
          const TransferCost cost = ring_cost(kind, static_cast<double>(kElements), shape, Protocol::ideal);
          const MessageTable table = message_table(kind, plan, kElements, {});
          const std::vector<double> sent = sent_on(table);
          if (course_of(kind) == Course::pairs) {
            // bytes_per_edge is what a member sends to all others; its messages follow one another.
            for (int member = 0; member < n; ++member) {
              double all = 0;
              int messages = 0;
              for (const MessageTable::Message& m : table.messages)
                if (table.connections[m.connection].from == member) {
                  all += static_cast<double>(m.end - m.begin);
                  ++messages;
                }
              CHECK(all == Approx(cost.bytes_per_edge).epsilon(kExact));
              CHECK(messages == cost.steps);
            }
            continue;
          }
          // bytes_per_edge is the sum over all channels.
          for (std::size_t c = 0; c < sent.size(); ++c)
            CHECK(sent[c] ==
                  Approx(cost.bytes_per_edge * plan.lanes[table.connections[c].lane].share).epsilon(kExact));
          CHECK(longest_chains(table, plan.lanes.size()) == std::vector<int>(plan.lanes.size(), cost.steps));
        }
}

TEST_CASE("of a ring's pieces each needs the one a step before, at both ends of its connection") {
  using enum CollectiveKind;
  for (const int n : {2, 3, 4, 8, 9})
    for (const MemberGroup& group : groups_of(n))
      for (const CollectiveKind kind : {all_reduce, reduce_scatter, all_gather})
        for (const int pieces : {1, 2, 3}) {
          CAPTURE(name(kind), group.what, n, pieces);
          const CollectivePlan plan = collective_plan(Algorithm::ring, *group.cluster, group.members, 0);
          const auto lanes = static_cast<std::int64_t>(plan.lanes.size());
          const MessageTable table =
              message_table(kind, plan, kElements, {kElements / n / lanes / pieces, 0});
          std::vector<std::vector<std::int64_t>> on(table.connections.size());
          for (std::size_t m = 0; m < table.messages.size(); ++m)
            on[table.messages[m].connection].push_back(static_cast<std::int64_t>(m));
          const int steps = (kind == all_reduce ? 2 : 1) * (n - 1);
          for (std::size_t c = 0; c < on.size(); ++c) {
            const Connection& own = table.connections[c];
            const auto before = std::find_if(
                table.connections.begin(), table.connections.end(),
                [&](const Connection& other) { return other.lane == own.lane && other.to == own.from; });
            REQUIRE(before != table.connections.end());
            const std::vector<std::int64_t>& at_sender = on[before - table.connections.begin()];
            REQUIRE(on[c].size() == static_cast<std::size_t>(steps * pieces));
            for (std::size_t q = 0; q < on[c].size(); ++q) {
              const std::int64_t m = on[c][q];
              const MessageTable::Message& message = table.messages[m];
              CHECK((message.end - message.begin) * n * lanes * pieces == kElements);
              const std::vector<std::int64_t> needed(table.needed.begin() + table.first_needed[m],
                                                     table.needed.begin() + table.first_needed[m + 1]);
              const auto step = static_cast<std::size_t>(pieces);
              CHECK(needed == (q < step ? std::vector<std::int64_t>{}
                                        : std::vector<std::int64_t>{at_sender[q - step]}));
              CHECK(message.behind == (q < step ? -1 : on[c][q - step]));
            }
          }
        }
}

TEST_CASE("a collective that goes around rings refuses the plan of another algorithm") {
  const auto cluster = make_cluster(star_of(4));
  const CollectivePlan plan =
      collective_plan(Algorithm::halving_doubling, *cluster, all_devices(*cluster), 0);
  CHECK_THROWS_WITH(message_table(CollectiveKind::broadcast, plan, 8, {}),
                    "a collective other than an all-reduce has 4 steps and 2 groups in the first; allowed: "
                    "one step on one ring, as with algorithm \"ring\"");
}
