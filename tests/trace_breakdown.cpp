#include <cmath>
#include <random>

#include "simulator/trace/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/trace_builder.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

struct Expected {
  double compute = 0, exposed = 0, data_stall = 0, bubble = 0, other = 0;
};

void check_breakdown(const Breakdown& found, const Expected& expected) {
  CHECK(found.compute_s == Approx(expected.compute).margin(1e-12));
  CHECK(found.exposed_communication_s == Approx(expected.exposed).margin(1e-12));
  CHECK(found.data_stall_s == Approx(expected.data_stall).margin(1e-12));
  CHECK(found.pipeline_bubble_s == Approx(expected.bubble).margin(1e-12));
  CHECK(found.other_s == Approx(expected.other).margin(1e-12));
}

void check_sum(const Trace& trace) {
  const StepWindow window = last_step(trace, 0);
  const double step_s = window.end_s - window.begin_s;
  const Breakdown found = break_down(trace, 0);
  CHECK(std::abs(found.total_s() - step_s) <= 1e-12 * step_s);
  double exposed = 0;
  for (const auto& [name, seconds] : found.exposed_s) exposed += seconds;
  CHECK(exposed == Approx(found.exposed_communication_s).epsilon(1e-12));
}

Dependency of_step_before(int op) {
  return {op, 1};
}

}  // namespace

TEST_CASE("each cause of idle time alone") {
  struct Case {
    std::string name;
    TraceParts parts;
    Expected expected;
  };
  // Rows are {op, ready, begin, end}.
  const std::vector<Case> cases = {
      {"computing all the time", {2, 1, {{"w", {0, 1}, {compute("f")}, {{0, 0, 0, 3}}}}}, {3}},
      {"gradient sync between backward and update",
       {2,
        1,
        {{"w",
          {0, 1},
          {compute("b"), all_reduce("sync", {0}), compute("update", {1})},
          {{0, 0, 0, 1}, {2, 3, 3, 4}, {1, 1, 1, 3}}}}},
       {2, 2}},
      {"gradient sync that nothing follows",
       {2, 1, {{"w", {0, 1}, {compute("b"), all_reduce("sync", {0})}, {{0, 0, 0, 1}, {1, 1, 1, 3}}}}},
       {1, 2}},
      {"a collective waits for its slowest member",
       {2,
        1,
        {{"w",
          {0, 1},
          {compute("b"), all_reduce("sync", {0}), compute("update", {1})},
          {{0, 0, 0, 1}, {2, 4, 4, 5}, {1, 1, 2.5, 4}}}}},
       {2, 1.5, 0, 0, 1.5}},
      {"gradient sync hidden behind computation",
       {2,
        1,
        {{"w",
          {0, 1},
          {compute("b1"), compute("b2"), all_reduce("sync", {0}), compute("update", {2})},
          {{0, 0, 0, 1}, {1, 1, 1, 4}, {3, 4, 4, 5}, {2, 1, 1, 3}}}}},
       {5}},
      {"a stage waits for its predecessor, then for the transfer",
       {1,
        2,
        {{"stage 1",
          {1},
          {message("recv", kReceive, kPipeline, -1), compute("f", {0})},
          {{1, 2.5, 2.5, 4}, {0, 0, 2, 2.5}}}}},
       {1.5, 0.5, 0, 2}},
      {"an exchange with a data-parallel neighbour is no bubble",
       {2,
        1,
        {{"w",
          {1},
          {message("recv", kReceive, kData, -1), compute("f", {0})},
          {{1, 2.5, 2.5, 4}, {0, 0, 2, 2.5}}}}},
       {1.5, 0.5, 0, 0, 2}},
      {"blocking send on the compute stream",
       {1,
        2,
        {{"stage 0",
          {0},
          {compute("f1"), message("send", kSend, kPipeline, 1, {}, 0), compute("f2")},
          {{0, 0, 0, 1}, {1, 1, 1.5, 2}, {2, 2, 2, 3}}}}},
       {2, 0.5, 0, 0.5}},
      {"loading a batch",
       {1, 1, {{"w", {0}, {load_batch("load"), compute("f", {0})}, {{1, 1, 1, 2}, {0, 0, 0, 1}}}}},
       {1, 0, 1}},
      {"loading hidden behind computation",
       {1,
        1,
        {{"w",
          {0},
          {compute("f1"), load_batch("load"), compute("f2", {1})},
          {{0, 0, 0, 2}, {2, 2, 2, 3}, {1, 0, 0, 1.5}}}}},
       {3}},
      {"a chain of causes: load, then a collective, then a kernel",
       {2,
        1,
        {{"w",
          {0, 1},
          {load_batch("load"), all_reduce("scatter", {0}), compute("f", {1})},
          {{2, 3, 3, 4}, {1, 1, 1.5, 3}, {0, 0, 0, 1}}}}},
       {1, 1.5, 1, 0, 0.5}},
      {"an op without time in the chain is passed over",
       {2,
        1,
        {{"w",
          {0, 1},
          {compute("b"), all_reduce("sync", {0}), compute("mark", {1}), compute("f", {2})},
          {{0, 0, 0, 1}, {2, 3, 3, 3}, {3, 3, 3, 4}, {1, 1, 1, 3}}}}},
       {2, 2}},
      {"an op that starts later than anything it waited for",
       {1, 1, {{"w", {0}, {compute("f1"), compute("f2")}, {{0, 0, 0, 1}, {1, 2, 2, 3}}}}},
       {2, 0, 0, 0, 1}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Trace trace = make_trace(c.parts);
    check_breakdown(break_down(trace, 0), c.expected);
    check_sum(trace);
  }
}

TEST_CASE("after its last op a rank waits: for the pipeline if there is one") {
  for (const bool pipeline : {false, true}) {
    CAPTURE(pipeline);
    TraceParts parts{pipeline ? 1 : 2, pipeline ? 2 : 1, {}};
    parts.classes = {{"early", {0}, {compute("f")}, {{0, 0, 0, 1}}},
                     {"late", {1}, {compute("f")}, {{0, 0, 0, 3}}}};
    const Trace trace = make_trace(parts);
    // The mean over ranks that compute for 1 s and for 3 s of a 3 s step.
    check_breakdown(break_down(trace, 0), pipeline ? Expected{2, 0, 0, 1, 0} : Expected{2, 0, 0, 0, 1});
    check_sum(trace);
  }
}

TEST_CASE("classes count as many ranks as they stand for") {
  TraceParts parts{4, 1, {}};
  parts.classes = {{"three", {0, 1, 2}, {compute("f")}, {{0, 0, 0, 4}}},
                   {"one", {3}, {compute("f")}, {{0, 0, 0, 2}}}};
  check_breakdown(break_down(make_trace(parts), 0), {(3 * 4 + 2) / 4.0, 0, 0, 0, 2 / 4.0});
}

TEST_CASE("only workers count") {
  TraceParts parts{1, 1, {{"w", {0}, {compute("f")}, {{0, 0, 0, 2}}}}};
  const auto schedule = schedule_of(parts);
  Role server;
  server.name = "server";
  server.meshes = {Mesh({{"data", 1}})};
  schedule->roles.push_back(server);
  Trace trace = make_trace(parts, schedule);
  trace.classes.push_back({0, 1, 0, {0}});
  check_breakdown(break_down(trace, 0), {2});
}

TEST_CASE("the step lies between the ends of the last two steps") {
  TraceParts parts{2, 1, {}};
  ClassOf w{"w", {0, 1}, {compute("f"), all_reduce("sync", {0})}, {}};
  w.ops[0].after.push_back(of_step_before(1));
  w.rows = {{0, 0, 0, 1, 0}, {0, 4, 4, 5, 1}, {1, 1, 1, 4, 0}, {1, 5, 5, 7.5, 1}};
  parts.classes = {w};
  const Trace trace = make_trace(parts);
  CHECK(last_step(trace, 0).begin_s == 4);
  CHECK(last_step(trace, 0).end_s == 7.5);
  check_breakdown(break_down(trace, 0), {1, 2.5});
}

TEST_CASE("what began before the window counts from the window on, through dependencies on the step before") {
  TraceParts parts{2, 1, {}};
  // Rank 0 computes in step 0 only. Rank 1's transfer of step 0 begins at 1, and step 1 waits for it.
  ClassOf early{"early", {1}, {compute("f"), all_reduce("sync", {0})}, {}};
  early.ops[0].after.push_back(of_step_before(1));
  early.rows = {{0, 0, 0, 1, 0}, {0, 8, 8, 10, 1}, {1, 1, 1, 8, 0}};
  ClassOf late{"late", {0}, {compute("f")}, {{0, 0, 0, 10, 0}}};
  parts.classes = {late, early};
  Trace trace = make_trace(parts);
  // Steps 0 and 1 both end at 10; moves ends and begins to 6, so that the window is [6, 10].
  trace.spans.end_s[0] = 6;
  trace.spans.end_s[3] = 6;  // the transfer, which now ends in step 0
  trace.spans.ready_s[2] = trace.spans.begin_s[2] = 6;
  check_breakdown(break_down(trace, 0), {2, 0, 0, 0, 2});
  check_sum(trace);
}

TEST_CASE("inside a repeat the latest run of a dependency is meant") {
  TraceParts parts{2, 1, {}};
  ClassOf w{"w", {0, 1}, {}, {}};
  Op begin = compute("repeat");
  begin.kind = OpKind::repeat_begin;
  begin.work = -1;
  begin.count = 2;
  Op end = begin;
  end.kind = OpKind::repeat_end;
  w.ops = {begin, compute("f", {2}), all_reduce("gather"), end};
  w.rows = {{1, 1, 1, 2, 0, 0}, {1, 4, 4, 5, 0, 1}, {2, 0, 0, 1, 0, 0}, {2, 2, 3, 4, 0, 1}};
  parts.classes = {w};
  // Computes in [1,2] and [4,5]; the second gather is ready at 2, begins at 3 and ends at 4.
  check_breakdown(break_down(make_trace(parts), 0), {2, 2, 0, 0, 1});
}

TEST_CASE("exposed communication is told by what was awaited") {
  struct Case {
    Op op;
    std::string name;
  };
  Op tensor = all_reduce("gather", {}, 1, kPipeline);
  tensor.purpose = Purpose::tensor;
  Op pull = message("pull", kReceive, kData, 1);
  pull.purpose = Purpose::servers;
  Op gather = message("gather", kReceive, kData, 1);
  gather.purpose = Purpose::none;
  for (const Case& c : {Case{all_reduce("sync"), "gradient sync"}, Case{tensor, "tensor communication"},
                        Case{message("recv", kReceive, kPipeline, -1), "pipeline transfer"},
                        Case{message("halo", kReceive, kData, -1), "data communication"},
                        Case{pull, "server transfer"}, Case{gather, "communication"}}) {
    CAPTURE(c.name);
    TraceParts parts{2, 2, {{"w", {0, 1, 2, 3}, {c.op, compute("f", {0})}, {{1, 1, 1, 2}, {0, 0, 0, 1}}}}};
    const Breakdown found = break_down(make_trace(parts), 0);
    REQUIRE(found.exposed_s.size() == 1);
    CHECK(waiting(found.exposed_s.begin()->first) == c.name);
    CHECK(found.exposed_s.begin()->second == Approx(1));
  }
}

TEST_CASE("parts add up to the step for random traces") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> duration(0, 1e-3);
  for (int round = 0; round < 50; ++round) {
    CAPTURE(round);
    TraceParts parts{2, 3, {}};
    for (int c = 0; c < 6; ++c) {
      ClassOf of{"stage " + std::to_string(c / 2), {c}, {}, {}};
      std::vector<std::vector<Row>> by_stream(3);
      std::vector<double> stream_end(3, 0.0), op_end;
      for (int op = 0; op < 400; ++op) {
        const int stream = static_cast<int>(random() % 3);
        std::vector<int> after;
        double ready = stream_end[stream];
        for (int d = 0; d < 2 && op > 0; ++d) {
          after.push_back(static_cast<int>(random() % static_cast<unsigned>(op)));
          ready = std::max(ready, op_end[after.back()]);
        }
        of.ops.push_back(stream == 0   ? compute("c", after)
                         : stream == 1 ? (random() % 2 ? all_reduce("a", after)
                                                       : message("m", kReceive, kPipeline, 1, after))
                                       : load_batch("l", after));
        const double begin = ready + (stream == 1 ? duration(random) : 0);
        const double end = begin + (random() % 4 == 0 ? 0 : duration(random));
        by_stream[stream].push_back({op, ready, begin, end});
        stream_end[stream] = end;
        op_end.push_back(end);
      }
      for (const auto& rows : by_stream) of.rows.insert(of.rows.end(), rows.begin(), rows.end());
      parts.classes.push_back(std::move(of));
    }
    check_sum(make_trace(parts));
  }
}
