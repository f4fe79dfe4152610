// Executes collectives message by message on real numbers, and checks the result of every member.
#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "simulator/collectives/message_table.hpp"
#include "tests/catch.hpp"
#include "tests/collectives_clusters.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

// Executes the table in a random order that keeps only the guarantees of a machine: a message is sent after
// those that it needs, its data is read then and taken in later, and messages on one connection stay in
// order.
std::vector<std::vector<double>> carry_out(const MessageTable& table,
                                           std::vector<std::vector<double>> buffers, std::mt19937& random) {
  std::vector<std::vector<std::size_t>> queues(table.connections.size());
  for (std::size_t m = 0; m < table.messages.size(); ++m)
    queues[static_cast<std::size_t>(table.messages[m].connection)].push_back(m);
  std::vector<std::size_t> sent(queues.size(), 0), taken(queues.size(), 0);  // numbers of messages
  std::vector<char> left(table.messages.size(), 0), arrived(table.messages.size(), 0);
  std::vector<std::vector<double>> under_way(table.messages.size());
  const auto may_send = [&](std::size_t m) {
    const int sender = table.connections[table.messages[m].connection].from;
    for (std::int64_t k = table.first_needed[m]; k < table.first_needed[m + 1]; ++k) {
      const auto other = static_cast<std::size_t>(table.needed[k]);
      const bool own = table.connections[table.messages[other].connection].from == sender;
      if ((own ? left : arrived)[other] == 0) return false;
    }
    return true;
  };
  const auto may_take = [&](std::size_t m) {
    const std::int64_t behind = table.messages[m].behind, after_sent = table.messages[m].after_sent;
    return (behind < 0 || arrived[behind] != 0) && (after_sent < 0 || left[after_sent] != 0);
  };
  struct Event {
    std::size_t connection;
    bool send;
  };
  for (std::size_t missing = table.messages.size(); missing > 0;) {
    std::vector<Event> ready;
    for (std::size_t c = 0; c < queues.size(); ++c) {
      if (sent[c] < queues[c].size() && may_send(queues[c][sent[c]])) ready.push_back({c, true});
      if (taken[c] < sent[c] && may_take(queues[c][taken[c]])) ready.push_back({c, false});
    }
    if (ready.empty()) FAIL("all that is left waits");
    const Event event = ready[std::uniform_int_distribution<std::size_t>(0, ready.size() - 1)(random)];
    const std::size_t c = event.connection, m = queues[c][(event.send ? sent : taken)[c]++];
    const MessageTable::Message& message = table.messages[m];
    if (event.send) {
      const std::vector<double>& from = buffers[table.connections[c].from];
      under_way[m].assign(from.begin() + message.begin, from.begin() + message.end);
      left[m] = 1;
      continue;
    }
    std::vector<double>& to = buffers[table.connections[c].to];
    for (std::int64_t e = message.begin; e < message.end; ++e)
      to[e] = under_way[m][e - message.begin] + (message.reduce ? to[e] : 0);
    under_way[m] = {};
    arrived[m] = 1;
    --missing;
  }
  return buffers;
}

void check_sum(const CollectivePlan& plan, std::int64_t elements, Cut cut) {
  std::mt19937 random(7);
  std::vector<std::vector<double>> buffers(static_cast<std::size_t>(plan.members));
  std::vector<double> sum(static_cast<std::size_t>(elements), 0);
  for (std::vector<double>& buffer : buffers)
    for (double& total : sum) {  // sums of whole numbers are exact in any order
      buffer.push_back(std::uniform_int_distribution<int>(-1000, 1000)(random));
      total += buffer.back();
    }
  const MessageTable table = message_table(CollectiveKind::all_reduce, plan, elements, cut);
  for (std::size_t m = 0; m < table.messages.size(); ++m)
    for (std::int64_t k = table.first_needed[m]; k < table.first_needed[m + 1]; ++k)
      REQUIRE(table.needed[k] < static_cast<std::int64_t>(m));
  const std::vector<std::vector<double>> ended = carry_out(table, buffers, random);
  for (const std::vector<double>& buffer : ended) REQUIRE(buffer == sum);
}

// Starts with 1000 m + e in element e of member m; checks what each member must have by the collective's
// definition.
void check_definition(CollectiveKind kind, const CollectivePlan& plan, std::int64_t elements, Cut cut) {
  using enum CollectiveKind;
  const MessageTable table = message_table(kind, plan, elements, cut);
  const std::int64_t n = plan.members;
  const auto value = [](std::int64_t member, std::int64_t e) {
    return static_cast<double>(1000 * member + e);
  };
  std::vector<std::vector<double>> buffers(static_cast<std::size_t>(n));
  for (std::int64_t m = 0; m < n; ++m)
    for (std::int64_t e = 0; e < table.elements; ++e) buffers[m].push_back(value(m, e));
  std::mt19937 random(11);
  const std::vector<std::vector<double>> ended = carry_out(table, buffers, random);
  for (std::int64_t m = 0; m < n; ++m)
    for (std::int64_t e = 0; e < table.elements; ++e) {
      std::int64_t part = 0;  // the member's part that contains the element
      while (e >= table.elements * (part + 1) / n) ++part;
      double sum = 0;
      for (std::int64_t other = 0; other < n; ++other) sum += value(other, e);
      if (kind == reduce_scatter && part == m) REQUIRE(ended[m][e] == sum);
      if (kind == all_gather) REQUIRE(ended[m][e] == value(part, e));
      if (kind == broadcast) REQUIRE(ended[m][e] == value(0, e));
      if (kind == reduce && m == 0) REQUIRE(ended[m][e] == sum);
      if (kind != all_to_all) continue;
      const std::int64_t from = e / elements / n, to = e / elements % n;
      REQUIRE(ended[m][e] == value(to == m ? from : m, e));
    }
}

double bytes_sent(const MessageTable& table) {
  double bytes = 0;
  for (const MessageTable::Message& m : table.messages) bytes += static_cast<double>(m.end - m.begin);
  return bytes;
}

}  // namespace

TEST_CASE("1 to 33 members of a star end with the exact sum, whatever the order on the way") {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling,
                                    Algorithm::recursive_doubling, Algorithm::hierarchical})
    for (int n = 1; n <= 33; ++n) {
      CAPTURE(kAlgorithmNames[static_cast<std::size_t>(algorithm)], n);
      const auto cluster = make_cluster(star_of(n));
      const CollectivePlan plan = collective_plan(algorithm, *cluster, all_devices(*cluster), 0);
      for (const std::int64_t elements : {1, 7, 64, 100}) {
        check_sum(plan, elements, {});
        check_sum(plan, elements, {3, 5});
      }
    }
}

TEST_CASE("nodes of several devices and NICs end with the exact sum") {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling,
                                    Algorithm::recursive_doubling, Algorithm::hierarchical})
    for (int nodes : {1, 2, 3, 5})
      for (int channels : {0, 1, 3}) {
        CAPTURE(kAlgorithmNames[static_cast<std::size_t>(algorithm)], nodes, channels);
        const auto cluster = make_cluster(dgx_like(nodes));
        const CollectivePlan plan = collective_plan(algorithm, *cluster, all_devices(*cluster), channels);
        check_sum(plan, 101, {});
        check_sum(plan, 101, {2, 2});
        std::vector<Endpoint> last_come_first = all_devices(*cluster);
        std::reverse(last_come_first.begin(), last_come_first.end());
        check_sum(collective_plan(algorithm, *cluster, last_come_first, channels), 101, {});
      }
}

TEST_CASE("tori end with the exact sum") {
  for (const std::vector<int>& dims : {std::vector<int>{1}, {2}, {5}, {2, 2}, {4, 3}, {3, 1, 4}, {2, 3, 4}})
    for (int devices : {1, 3}) {
      const auto cluster = make_cluster(torus_of(dims, devices));
      CAPTURE(dims.size(), cluster->devices());
      const CollectivePlan plan = collective_plan(Algorithm::torus, *cluster, all_devices(*cluster), 0);
      for (const std::int64_t elements : {1, 10, 97}) {
        check_sum(plan, elements, {});
        check_sum(plan, elements, {2, 2});
      }
    }
  const auto cluster = make_cluster(torus_of({4, 3}));
  for (const std::vector<Endpoint>& line : {std::vector<Endpoint>{4, 5, 6, 7}, {1, 5, 9}, {6}})
    check_sum(collective_plan(Algorithm::torus, *cluster, line, 0), 50, {});
}

TEST_CASE("collectives of all kinds end as they are defined, whatever the order on the way") {
  using enum CollectiveKind;
  const auto check = [](const ClusterParts& parts, int channels) {
    const auto cluster = make_cluster(parts);
    std::vector<Endpoint> members = all_devices(*cluster);
    for (int turn = 0; turn < 2; ++turn) {
      const CollectivePlan plan = collective_plan(Algorithm::ring, *cluster, members, channels);
      for (const CollectiveKind kind : {reduce_scatter, all_gather, broadcast, reduce, all_to_all})
        for (const std::int64_t elements : {1, 7, 50})
          for (const Cut cut : {Cut{}, Cut{2, 3}}) {
            CAPTURE(kCollectiveNames[static_cast<std::size_t>(kind)], members.size(), channels, elements,
                    turn);
            check_definition(kind, plan, elements, cut);
          }
      std::reverse(members.begin(), members.end());
    }
  };
  for (int n : {1, 2, 3, 5, 8}) check(star_of(n), 0);
  for (int channels : {0, 1, 3}) check(dgx_like(2), channels);
}

TEST_CASE("bytes on the wire are each algorithm's") {
  struct Case {
    Algorithm algorithm;
    int members;
    double buffers;  // buffers' worth of data sent by all members together
  };
  const Case cases[] = {
      {Algorithm::ring, 8, 2 * 7},              // 2 (n-1)
      {Algorithm::tree, 8, 2 * 7},              // n-1 edges, S/2 in each of two trees, up and down
      {Algorithm::halving_doubling, 8, 2 * 7},  // n x 2 (n-1)/n
      {Algorithm::ring, 11, 2 * 10},
      {Algorithm::tree, 11, 2 * 10},
      {Algorithm::halving_doubling, 11, 2 * 7 + 2 * 3},    // 3 pairs, there and back
      {Algorithm::recursive_doubling, 8, 8 * 3},           // n log2(n)
      {Algorithm::recursive_doubling, 11, 8 * 3 + 2 * 3},  // 3 pairs, there and back
      {Algorithm::hierarchical, 8, 2 * 7},
  };
  constexpr std::int64_t kElements = 8 * 11 * 16 * 9;
  for (const Case& c : cases) {
    CAPTURE(kAlgorithmNames[static_cast<std::size_t>(c.algorithm)], c.members);
    const auto cluster = make_cluster(star_of(c.members));
    const CollectivePlan plan = collective_plan(c.algorithm, *cluster, all_devices(*cluster), 0);
    CHECK(bytes_sent(message_table(CollectiveKind::all_reduce, plan, kElements, {})) ==
          c.buffers * kElements);
    CHECK(bytes_sent(message_table(CollectiveKind::all_reduce, plan, kElements, {100, 100})) ==
          c.buffers * kElements);
    CHECK(
        message_count(plan, kElements, {}) ==
        static_cast<double>(message_table(CollectiveKind::all_reduce, plan, kElements, {}).messages.size()));
    double edges = 0;  // from the shares of the collective's steps
    for (const Lane& lane : plan.lanes)
      for (std::size_t s = 0; s < lane.stages.size(); ++s)
        edges += stage_shares(lane)[s].edge * static_cast<double>(stage_edges(lane.stages[s]).size());
    CHECK(edges == Approx(c.buffers).epsilon(1e-12));
  }
  const auto torus = make_cluster(torus_of({4, 3}));
  const CollectivePlan plan = collective_plan(Algorithm::torus, *torus, all_devices(*torus), 0);
  CHECK(bytes_sent(message_table(CollectiveKind::all_reduce, plan, 12 * 400, {})) == 2 * 11 * 12 * 400);
}

TEST_CASE("of two messages that swap each is added after the other one has left") {
  for (const int n : {2, 3, 8, 13})
    for (const Cut cut : {Cut{}, Cut{3, 0}}) {
      CAPTURE(n, cut.most);
      const auto cluster = make_cluster(star_of(n));
      const MessageTable table = message_table(
          CollectiveKind::all_reduce,
          collective_plan(Algorithm::recursive_doubling, *cluster, all_devices(*cluster), 0), 10, cut);
      int swaps = 0;
      for (std::size_t m = 0; m < table.messages.size(); ++m) {
        const MessageTable::Message& message = table.messages[m];
        if (message.after_sent < 0) continue;
        ++swaps;
        const MessageTable::Message& other = table.messages[message.after_sent];
        CHECK(other.after_sent == static_cast<std::int64_t>(m));
        CHECK((other.begin == message.begin && other.end == message.end));
        CHECK((other.reduce && message.reduce));
        const Connection &way = table.connections[message.connection],
                         &back = table.connections[other.connection];
        CHECK((way.from == back.to && way.to == back.from));
      }
      int power = 1, steps = 0;
      for (; 2 * power <= n; power *= 2) ++steps;
      CHECK(swaps == power * steps * (cut.most > 0 ? 4 : 1));
    }
}

TEST_CASE("inner nodes of one tree are leaves of the other") {
  for (int n = 1; n <= 70; ++n) {
    CAPTURE(n);
    const std::vector<std::vector<int>> trees = double_tree(n);
    std::vector<int> children[2];
    for (int t : {0, 1}) {
      children[t].assign(static_cast<std::size_t>(n), 0);
      int roots = 0, deepest = 0;
      for (int i = 0; i < n; ++i) {
        if (trees[t][i] < 0) {
          ++roots;
          continue;
        }
        ++children[t][trees[t][i]];
        int depth = 0;
        for (int up = i; trees[t][up] >= 0; up = trees[t][up]) REQUIRE(++depth < n);
        deepest = std::max(deepest, depth);
      }
      CHECK(roots == 1);
      CHECK((1 << deepest) < 2 * n);  // depth ceil(log2 n)
      CHECK(*std::max_element(children[t].begin(), children[t].end()) <= 2);
    }
    // A root has only one child, so that it can also be an inner node of the other tree.
    for (int i = 0; i < n; ++i) {
      const int both = children[0][i] + children[1][i];
      const int parents = (trees[0][i] >= 0) + (trees[1][i] >= 0);
      CHECK(both + parents <= 4);
    }
  }
}

TEST_CASE("what does not fit says what would") {
  const auto uneven = make_cluster(dgx_like(2));
  CHECK(misfit(Algorithm::hierarchical, *uneven, {0, 1, 2, 8}) ==
        "3 members on one node and 1 on another; allowed: the same number on every node");
  CHECK(misfit(Algorithm::hierarchical, *uneven, {0, 1, 8, 9}).empty());
  CHECK(misfit(Algorithm::torus, *uneven, {0, 8}) ==
        "a fabric that is not a torus; allowed: fabrics of kind \"torus\" or \"ring\"");
  const auto torus = make_cluster(torus_of({4, 3}));
  CHECK(misfit(Algorithm::torus, *torus, {0, 1, 2}).find("2 x") == std::string::npos);
  CHECK(misfit(Algorithm::torus, *torus, {0, 1, 2}).find("complete dimensions of the torus of 4 x 3") !=
        std::string::npos);
  CHECK_FALSE(misfit(Algorithm::torus, *torus, {0, 1, 4, 6}).empty());
  CHECK(misfit(Algorithm::torus, *torus, {8, 9, 10, 11}).empty());
  CHECK_THROWS_AS(collective_plan(Algorithm::torus, *torus, {0, 1, 2}, 0), InputError);
}

TEST_CASE("NVLS without a switch: its messages leave every member the sum") {
  for (const int nodes : {1, 2, 3, 5})
    for (const std::int64_t elements : {1, 37, 1000}) {
      CAPTURE(nodes, elements);
      ClusterParts parts = dgx_like(nodes);
      parts.node.device = device_preset("h100");
      const auto cluster = make_cluster(parts);
      const Algorithm algorithm = nodes > 1 ? Algorithm::nvls_tree : Algorithm::nvls;
      check_sum(collective_plan(algorithm, *cluster, all_devices(*cluster), 0), elements, {0, 0});
      check_sum(collective_plan(algorithm, *cluster, all_devices(*cluster), 0), elements, {7, 5});
    }
}

TEST_CASE("CollNet without a network that sums: its messages leave every member the sum") {
  for (const Algorithm algorithm : {Algorithm::collnet_chain, Algorithm::collnet_direct})
    for (const int nodes : {2, 3, 5})
      for (const std::int64_t elements : {1, 37, 1000}) {
        CAPTURE(static_cast<int>(algorithm), nodes, elements);
        ClusterParts parts = dgx_like(nodes);
        parts.fabric.sharp = true;
        const auto cluster = make_cluster(parts);
        check_sum(collective_plan(algorithm, *cluster, all_devices(*cluster), 0), elements, {0, 0});
        check_sum(collective_plan(algorithm, *cluster, all_devices(*cluster), 0), elements, {7, 5});
      }
}

TEST_CASE("what CollNet needs") {
  ClusterParts parts = dgx_like(2);
  const auto plain = make_cluster(parts);
  parts.fabric.sharp = true;
  const auto sums = make_cluster(parts);
  parts.node.interconnect = Node::Interconnect::pcie;
  parts.node.pcie_bandwidth = 16e9;
  const auto pcie = make_cluster(parts);
  const std::vector<Endpoint> both = {0, 1, 8, 9};
  for (const Algorithm algorithm : {Algorithm::collnet_chain, Algorithm::collnet_direct}) {
    CHECK(misfit(algorithm, *sums, both).empty());
    CHECK(misfit(algorithm, *plain, both) ==
          "a network whose switches do not reduce; allowed: a fabric with sharp = true");
    CHECK(misfit(algorithm, *sums, {0, 1, 2}) == "members on one node; allowed: several nodes");
    CHECK(misfit(algorithm, *sums, {0, 1, 8}).find("allowed: the same number on every node") !=
          std::string::npos);
    CHECK(misfit(algorithm, *pcie, {0, 8}).empty());
  }
  CHECK(misfit(Algorithm::collnet_chain, *pcie, both).empty());
  CHECK(misfit(Algorithm::collnet_direct, *pcie, both) ==
        "several members on nodes without an NVSwitch; allowed: interconnect = \"nvswitch\"");
}
