#include <map>
#include <random>

#include "simulator/trace/causes.hpp"
#include "simulator/trace/critical_path.hpp"
#include "simulator/trace/rows.hpp"
#include "tests/catch.hpp"
#include "tests/trace_builder.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

using Kinds = std::map<std::string, double>;

// Checks that segments adjoin from the beginning of the step to its end, and the seconds of each kind.
void check_path(const Trace& trace, const Kinds& expected) {
  const std::vector<PathSegment> path = critical_path(trace, 0);
  const StepWindow window = last_step(trace, 0);
  REQUIRE_FALSE(path.empty());
  CHECK(path.front().begin_s == window.begin_s);
  CHECK(path.back().end_s == window.end_s);
  for (std::size_t i = 1; i < path.size(); ++i) CHECK(path[i].begin_s == path[i - 1].end_s);
  Kinds found;
  for (const auto& [kind, seconds] : seconds_by_kind(path)) found[kind] = seconds;
  CHECK(found.size() == expected.size());
  for (const auto& [kind, seconds] : expected) {
    CAPTURE(kind);
    CHECK(found[kind] == Approx(seconds).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("the path of each kind of cause") {
  struct Case {
    std::string name;
    TraceParts parts;
    Kinds expected;
  };
  // Rows are {op, ready, begin, end}.
  const std::vector<Case> cases = {
      {"the order of a stream",
       {1, 1, {{"w", {0}, {compute("f1"), compute("f2")}, {{0, 0, 0, 1}, {1, 1, 1, 3}}}}},
       {{"forward", 3}}},
      {"a dependency",
       {1, 1, {{"w", {0}, {load_batch("load"), compute("f", {0})}, {{1, 1, 1, 3}, {0, 0, 0, 1}}}}},
       {{"data", 1}, {"forward", 2}}},
      {"of two causes the one that ended last",
       {1,
        1,
        {{"w",
          {0},
          {load_batch("load"), compute("f1"), compute("f2", {0})},
          {{1, 0, 0, 2}, {2, 2, 2, 3}, {0, 0, 0, 1.5}}}}},
       {{"forward", 3}}},
      {"communication behind computation is not on it",
       {2,
        1,
        {{"w",
          {0, 1},
          {compute("b1"), compute("b2"), all_reduce("sync", {0}), compute("update", {2})},
          {{0, 0, 0, 1}, {1, 1, 1, 4}, {3, 4, 4, 5}, {2, 1, 1, 3}}}}},
       {{"forward", 5}}},
      {"communication that outlasts computation is on it as a whole",
       {2,
        1,
        {{"w",
          {0, 1},
          {compute("b1"), compute("b2"), all_reduce("sync", {0}), compute("update", {2})},
          {{0, 0, 0, 1}, {1, 1, 1, 4}, {3, 6, 6, 7}, {2, 1, 1, 6}}}}},
       {{"forward", 2}, {"gradient sync", 5}}},
      {"a straggler holds up the others' collective",
       {2,
        1,
        {{"fast",
          {0},
          {compute("b"), all_reduce("sync", {0}), compute("update", {1})},
          {{0, 0, 0, 1}, {2, 4, 4, 5}, {1, 1, 3, 4}}},
         {"slow",
          {1},
          {compute("b"), all_reduce("sync", {0}), compute("update", {1})},
          {{0, 0, 0, 3}, {2, 4, 4, 4.5}, {1, 3, 3, 4}}}}},
       {{"forward", 3 + 1}, {"gradient sync", 1}}},
      {"a stage waits for what the stage before sends",
       {1,
        2,
        {{"stage 0",
          {0},
          {compute("f0"), message("send 0", kSend, kPipeline, 1, {0}), compute("f1"),
           message("send 1", kSend, kPipeline, 1, {2})},
          {{0, 0, 0, 1}, {2, 1, 1, 2}, {1, 1, 1, 1.5}, {3, 2, 2, 2.5}},
          {At{1, 0, 0}}},
         {"stage 1",
          {1},
          {message("receive 0", kReceive, kPipeline, -1), compute("f0", {0}),
           message("receive 1", kReceive, kPipeline, -1), compute("f1", {2})},
          {{1, 1.5, 1.5, 2.5}, {3, 2.5, 2.5, 3.5}, {0, 0, 1, 1.5}, {2, 1.5, 2, 2.5}},
          {At{1, 1, 0}}}}},
       {{"forward", 1 + 2}, {"pipeline transfer", 0.5}}},
      {"a timer counts from when what it was set for is there",  // gradient at 3 s, sent at the tick of 4 s
       {2,
        1,
        {{"w",
          {0, 1},
          {compute("b"), sleep("cycle"), all_reduce("sync", {0, 1}), compute("update", {2})},
          {{0, 0, 0, 3}, {3, 5, 5, 6}, {2, 4, 4, 5}, {1, 0, 0, 4}}}}},
       {{"forward", 3 + 1}, {"fusion cycle", 1}, {"gradient sync", 1}}},
      {"an op that starts later than anything it waited for",
       {1, 1, {{"w", {0}, {compute("f1"), compute("f2")}, {{0, 0, 0, 1}, {1, 2, 2, 3}}}}},
       {{"forward", 2}, {"waiting", 1}}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    check_path(make_trace(c.parts), c.expected);
  }
}

TEST_CASE("the path leads through the straggler") {
  TraceParts parts{2, 1, {}};
  parts.classes = {{"fast", {0}, {compute("b"), all_reduce("sync", {0})}, {{0, 0, 0, 1}, {1, 1, 3, 4}}},
                   {"slow", {1}, {compute("b"), all_reduce("sync", {0})}, {{0, 0, 0, 3}, {1, 3, 3, 4}}}};
  const Trace trace = make_trace(parts);
  const std::vector<PathSegment> path = critical_path(trace, 0);
  REQUIRE(path.size() == 2);
  CHECK(trace.spans.rank_class[path[0].row] == 1);
  CHECK(trace.op_of(path[0].row).name == "b");
}

TEST_CASE("startup and latency of a transfer stand apart from its bytes") {
  TraceParts parts{2, 1, {}};
  parts.classes = {{"w", {0, 1}, {compute("b"), all_reduce("sync", {0})}, {{0, 0, 0, 1}, {1, 1, 1, 3}}}};
  Trace trace = make_trace(parts);
  trace.spans.latency_s = {0, 0.5};
  check_path(trace, {{"forward", 1}, {"latency", 0.5}, {"gradient sync", 1.5}});
  trace.spans.latency_s = {0, 9};  // more than the transfer took
  check_path(trace, {{"forward", 1}, {"latency", 2}});
}

TEST_CASE("the path goes through a server") {
  // The worker pushes in [1,2], the server updates in [2,2.5] and the worker pulls in [2.5,3.5].
  TraceParts parts{1, 1, {}};
  const auto with_peer = [](Op op, Peer peer, Pass pass) {
    op.messages[0].peer = std::move(peer);
    op.pass = pass;
    op.purpose = Purpose::gradient_sync;
    return op;
  };
  const Pass sync = Pass::gradient_sync;
  ClassOf worker{"worker", {0}, {compute("b")}, {{0, 0, 0, 1}, {1, 1, 1, 2}, {2, 2, 2.5, 3.5}}};
  worker.ops.push_back(with_peer(message("push", kSend, kData, 1, {0}), Peer::each(1), sync));
  worker.ops.push_back(with_peer(message("pull", kReceive, kData, 1, {1}), Peer::each(1), sync));
  ClassOf server{"server", {0}, {}, {{1, 2, 2, 2.5}, {0, 0, 1, 2}, {2, 2.5, 2.5, 3.5}}};
  server.ops.push_back(with_peer(message("receive", kReceive, kData, 1), Peer::each(0), sync));
  server.ops.push_back(compute("update", {0}));
  server.ops.push_back(with_peer(message("send", kSend, kData, 1, {1}), Peer::each(0), sync));
  parts.classes = {worker, server};
  const auto schedule = schedule_of(parts);
  schedule->roles.push_back({"server", {Mesh({{"server", 1}})}});
  schedule->programs[1].role = 1;
  Trace trace = make_trace(parts, schedule);
  trace.classes[1] = {0, 1, 1, {0}};
  check_path(trace, {{"forward", 1}, {"gradient sync", 2}, {"server work", 0.5}});
}

TEST_CASE("a wait for a counter leads to the signal") {
  TraceParts parts{2, 1, {}};
  Op signal = compute("tell", {0});
  signal.kind = OpKind::signal;
  signal.counter.name = "ready";
  signal.signalled = {Peer::along(kData, 1)};
  Op wait = compute("wait");
  wait.kind = OpKind::wait_until;
  wait.counter.name = "ready";
  wait.at_least = 1;
  parts.classes = {{"first", {0}, {compute("f"), signal}, {{0, 0, 0, 2}, {1, 2, 2, 2}}},
                   {"second", {1}, {wait, compute("f")}, {{0, 0, 0, 2}, {1, 2, 2, 3}}}};
  check_path(make_trace(parts), {{"forward", 3}});
}

TEST_CASE("the path lies inside the last step, through what crosses its begin") {
  TraceParts parts{2, 1, {}};
  ClassOf w{"w", {0, 1}, {compute("f"), all_reduce("sync", {0})}, {}};
  w.ops[0].after.push_back({1, 1});
  w.rows = {{0, 0, 0, 1, 0}, {0, 4, 4, 5, 1}, {1, 1, 1, 4, 0}, {1, 5, 5, 7.5, 1}};
  parts.classes = {w};
  check_path(make_trace(parts), {{"forward", 1}, {"gradient sync", 2.5}});
  // If another rank ends its first step later, the path begins within the transfer.
  parts.classes.push_back({"late", {1}, {compute("f")}, {{0, 0, 0, 4.5, 0}}});
  parts.classes[0].ranks = {0};
  Trace trace = make_trace(parts);
  check_path(trace, {{"forward", 0.5}, {"gradient sync", 2.5}});
}

TEST_CASE("segments adjoin for random traces, and contradictory ones end") {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> duration(0, 1e-3);
  for (int round = 0; round < 30; ++round) {
    CAPTURE(round);
    TraceParts parts{2, 3, {}};
    for (int c = 0; c < 6; ++c) {
      ClassOf of{"stage " + std::to_string(c / 2), {c}, {}, {}, {}};
      for (int op = 0; op < 60; ++op) {
        std::vector<int> after;
        if (op > 0) after.push_back(static_cast<int>(random() % static_cast<unsigned>(op)));
        of.ops.push_back(op % 3 == 0   ? compute("c", after)
                         : op % 3 == 1 ? all_reduce("a", after)
                                       : message("m", op % 2 ? kReceive : kSend, kPipeline, 1, after));
      }
      for (int stream = 0; stream < 2; ++stream)
        for (int op = 0; op < 60; ++op) {
          if ((op % 3 == 0) != (stream == 0)) continue;
          const double ready = 10 * duration(random), begin = ready + duration(random);
          of.rows.push_back({op, ready, begin, begin + duration(random)});
        }
      parts.classes.push_back(std::move(of));
    }
    const Trace trace = make_trace(parts);
    const std::vector<PathSegment> path = critical_path(trace, 0);
    const StepWindow window = last_step(trace, 0);
    CHECK(path.front().begin_s == window.begin_s);
    CHECK(path.back().end_s == window.end_s);
    for (std::size_t i = 1; i < path.size(); ++i) CHECK(path[i].begin_s == path[i - 1].end_s);
  }
}
