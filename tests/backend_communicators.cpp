// Tests the parts of NCCL's communicators that need no GPU: which communicators exist, who creates their ids,
// that creating them cannot deadlock, and which calls they get.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "backend/host/launch.hpp"
#include "backend/runtime/communicators.hpp"
#include "backend/runtime/placement.hpp"
#include "models/text/error.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/backend_run.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

Plan plan_of(const std::string& overrides) {
  std::vector<std::string> keys;
  for (std::size_t at = 0; at < overrides.size();) {
    const std::size_t end = std::min(overrides.find(' ', at), overrides.size());
    keys.push_back(overrides.substr(at, end - at));
    at = end + 1;
  }
  return write_schedule(read_scenario_text(test::kDeepPerceptron, "test", keys));
}

struct Case {
  const char* overrides;
  std::size_t collectives, messages;  // communicators of groups, and of two ranks for one-way messages
};
// p stages have p - 1 links, each with activations one way and gradients the other way, and there are d
// replicas. n workers send to each of s servers and get answers.
const Case kCases[] = {
    {"strategy.data=4 cluster.nodes=4", 1, 0},
    {"strategy.data=4 cluster.nodes=4 strategy.all_reduce=\"tree\"", 1, 0},
    {"strategy.pipeline=4 cluster.nodes=4", 0, 6},
    {"strategy.data=2 strategy.pipeline=4 cluster.nodes=8", 4, 12},
    {"strategy.data=4 cluster.nodes=4 strategy.gradients=\"parameter-server\" "
     "strategy.parameter_server.servers=2",
     0, 16},
};

std::string failure_of(int ranks, const std::function<void(Transport&)>& body) {
  LaunchOptions options;
  options.ranks = ranks;
  try {
    launch(options, body);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Every transfer between ranks has a communicator, and all ranks create them to the end") {
  for (const Case& c : kCases) {
    INFO(c.overrides);
    const Plan plan = plan_of(c.overrides);
    const Communication communication(*plan.schedule);
    const std::vector<Communicator> all = communicators(*plan.schedule, communication);
    CHECK_NOTHROW(refuse_unordered(*plan.schedule, communication));
    const auto collectives = static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [](const Communicator& k) { return !k.kinds.empty(); }));
    CHECK(collectives == c.collectives);
    CHECK(all.size() - collectives == c.messages);
    std::set<int> transfers;
    for (const Communicator& k : all) {
      CHECK(transfers.insert(k.transfer).second);
      CHECK(k.ranks == communication.transfers[static_cast<std::size_t>(k.transfer)].ranks);
      for (std::size_t i = 0; i < k.ranks.size(); ++i) CHECK(k.member_of(k.ranks[i]) == static_cast<int>(i));
      CHECK(k.member_of(plan.schedule->ranks()) == -1);
    }

    // Each rank waits in its first communicator that does not exist yet, until all members of that one wait.
    std::map<int, std::size_t> at;
    const auto next = [&](int rank) {
      while (at[rank] < all.size() && all[at[rank]].member_of(rank) < 0) ++at[rank];
      return at[rank];
    };
    for (std::size_t created = 0; created < all.size(); ++created) {
      const auto ready = std::find_if(all.begin(), all.end(), [&](const Communicator& k) {
        return std::all_of(k.ranks.begin(), k.ranks.end(),
                           [&](int rank) { return next(rank) == static_cast<std::size_t>(&k - all.data()); });
      });
      REQUIRE(ready != all.end());
      for (const int rank : ready->ranks) ++at[rank];
    }
  }
}

TEST_CASE("What streams of GPUs cannot do is refused by name") {
  for (const char* mode : {"async", "stale-synchronous"}) {
    const Plan plan = plan_of(std::string("strategy.data=4 cluster.nodes=4 "
                                          "strategy.gradients=\"parameter-server\" "
                                          "strategy.parameter_server.mode=\"") +
                              mode + "\"");
    try {
      refuse_unordered(*plan.schedule, Communication(*plan.schedule));
      FAIL("not refused: " << mode);
    } catch (const RunError& error) {
      INFO(error.what());
      CHECK(std::string(error.what()).find("which the streams of a GPU cannot do") != std::string::npos);
    }
  }
}

TEST_CASE("Each communicator gets the id that its first member made") {
  const std::vector<Communicator> all = {
      {0, {0, 1}, {}}, {1, {1, 0}, {}}, {2, {2, 0, 1}, {}}, {3, {1, 2}, {}}};
  const std::string failure = failure_of(3, [&](Transport& transport) {
    int made = 0;
    const std::vector<std::string> ids = share_ids(transport, all, [&] {
      std::string id(128, '\0');  // ids are bytes and may contain zeros
      id[5] = static_cast<char>('a' + transport.rank());
      id[9] = static_cast<char>(made++);
      return id;
    });
    const std::vector<std::pair<char, int>> expected = {{'a', 0}, {'b', 0}, {'c', 0}, {'b', 1}};
    if (ids.size() != expected.size()) throw RunError("another number of ids");
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i].size() != 128 || ids[i][5] != expected[i].first || ids[i][9] != expected[i].second)
        throw RunError("another id");
    if (made != (transport.rank() == 1 ? 2 : 1)) throw RunError("ids that nobody asked for");
  });
  CHECK(failure.empty());
  INFO(failure);
}

TEST_CASE("What every rank says reaches every rank") {
  const std::string failure = failure_of(3, [](Transport& transport) {
    const std::string own(static_cast<std::size_t>(transport.rank()) * 1000,
                          static_cast<char>(transport.rank()));
    const std::vector<std::string> all = all_gather(transport, own);
    for (int r = 0; r < 3; ++r)
      if (all.at(static_cast<std::size_t>(r)) !=
          std::string(static_cast<std::size_t>(r) * 1000, static_cast<char>(r)))
        throw RunError("something else arrived");
    if (local_rank(transport) != transport.rank()) throw RunError("another local rank");
  });
  INFO(failure);
  CHECK(failure.empty());
}

TEST_CASE("A rank's number on its machine") {
  struct {
    std::vector<RankPlace> places;
    std::vector<int> expected;
  } const cases[] = {
      {{{"a", ""}, {"a", ""}, {"b", ""}, {"a", ""}}, {0, 1, 0, 2}},      // counted
      {{{"a", "1"}, {"b", "0"}, {"a", "0"}, {"b", "1"}}, {1, 0, 0, 1}},  // as the starter numbered them
      {{{"a", "0"}, {"a", "0"}, {"a", "0"}}, {0, 1, 2}},   // ambiguous: from the parent process, so counted
      {{{"a", "x"}, {"a", "-1"}, {"b", "3"}}, {0, 1, 3}},  // not numbers, so counted
  };
  for (const auto& c : cases)
    for (std::size_t r = 0; r < c.places.size(); ++r)
      CHECK(local_rank(c.places, static_cast<int>(r)) == c.expected[r]);
  CHECK(most_alike({"gpu 1", "gpu 2", "gpu 1", "", "", ""}) == 2);
  CHECK(most_alike({"", ""}) == 0);
}

// MPI-3.1, 5.1 defines what each member contributes and receives; NCCL, "In-place operations", defines where.
TEST_CASE("Parts of collectives are those that NCCL takes for in place") {
  for (const int n : {2, 3, 8})
    for (const std::size_t elements : {std::size_t{8}, std::size_t{1000}, std::size_t{1001}}) {
      const auto size = static_cast<std::size_t>(n);
      std::size_t gathered = 0;
      for (int i = 0; i < n; ++i) {
        for (const CollectiveKind whole :
             {CollectiveKind::all_reduce, CollectiveKind::broadcast, CollectiveKind::reduce}) {
          const CollectiveCall call = collective_call(whole, elements, n, i);
          CHECK((call.count == elements && call.send == 0 && call.receive == 0));
        }
        const CollectiveCall scatter = collective_call(CollectiveKind::reduce_scatter, elements, n, i);
        CHECK((scatter.send == 0 && scatter.receive == static_cast<std::size_t>(i) * scatter.count));
        const CollectiveCall gather = collective_call(CollectiveKind::all_gather, elements, n, i);
        CHECK((gather.receive == 0 && gather.send == gathered));
        gathered += gather.count;
      }
      CHECK((gathered <= elements && elements - gathered < size));
      // The parts of pairs do not overlap and are inside the buffer.
      const std::size_t count =
          collective_call(CollectiveKind::all_to_all, elements * size * size, n, 0).count;
      CHECK(count == elements);
      std::set<std::size_t> begins;
      for (int from = 0; from < n; ++from)
        for (int to = 0; to < n; ++to) begins.insert(pair_part(count, n, from, to));
      CHECK((begins.size() == size * size && *begins.begin() == 0 &&
             *begins.rbegin() + count == count * size * size));
    }
}

TEST_CASE("Kernels of all communicators of a rank fit on a GPU side by side") {
  const auto pairs = [](int n) {  // rank 0 with each other rank
    std::vector<Communicator> all;
    for (int i = 1; i <= n; ++i) all.push_back({i, {0, i}, {}});
    return all;
  };
  CHECK(block_budget({}, 1, 80).messages == 0);
  CHECK(block_budget(pairs(1), 2, 80).messages == 0);
  struct {
    int collectives, messages, multiprocessors;  // communicators of rank 0
    int expected_collectives, expected_messages;
  } const cases[] = {
      // The largest power of two, up to 32, with which all fit into 3/4 of the multiprocessors; collectives
      // come first.
      {0, 2, 80, 32, 16}, {0, 3, 80, 32, 16},  {0, 4, 80, 32, 8},  {0, 6, 80, 32, 8},
      {0, 50, 80, 8, 1},  {1, 1, 80, 32, 16},  {2, 0, 80, 16, 32}, {1, 4, 132, 32, 16},
      {2, 8, 132, 32, 4}, {3, 16, 132, 16, 2}, {0, 99, 132, 1, 1},
  };
  for (const auto& c : cases) {
    CAPTURE(c.collectives, c.messages, c.multiprocessors);
    std::vector<Communicator> all = pairs(c.collectives + c.messages);
    for (int i = 0; i < c.collectives; ++i)
      all[static_cast<std::size_t>(i)].kinds = {CollectiveKind::all_reduce};
    const BlockBudget budget = block_budget(all, c.collectives + c.messages + 1, c.multiprocessors);
    if (c.collectives > 0) CHECK(budget.collectives == c.expected_collectives);
    if (c.messages > 0) CHECK(budget.messages == c.expected_messages);
    CHECK(budget.most_together == c.collectives + c.messages);
    CHECK(c.collectives * budget.collectives * (c.collectives > 0) +
              c.messages * budget.messages * (c.messages > 0) <=
          c.multiprocessors * 3 / 4);
  }
  try {
    block_budget(pairs(61), 62, 80);
    FAIL("61 communicators on 80 multiprocessors are refused");
  } catch (const RunError& error) {
    CHECK(std::string(error.what()).find("allowed: 60") != std::string::npos);
  }
}
