// Checks the figures of measured traces on traces made by hand: step times, the median step, kinds of ops,
// overlap.
#include "simulator/trace/measurement.hpp"

#include "models/text/error.hpp"
#include "simulator/trace/op_seconds.hpp"
#include "tests/catch.hpp"
#include "tests/trace_builder.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

// Returns a trace of two ranks that both compute and then all-reduce in each step. Rank 1 computes for 1 s,
// rank 0 for the given time; the all-reduce takes 0.5 s from when both are ready. Steps follow without a gap.
Trace steps_of(const std::vector<double>& compute_s) {
  TraceParts parts{2, 1, {}};
  ClassOf first{"worker", {0}, {compute("forward"), all_reduce("sync", {0})}, {}, {}};
  ClassOf second{"worker", {1}, first.ops, {}, {}};
  double now = 0;
  std::vector<Row> network[2];
  for (int step = 0; step < static_cast<int>(compute_s.size()); ++step) {
    const double slow = now + std::max(1.0, compute_s[step]);
    first.rows.push_back({0, now, now, now + compute_s[step], step});
    second.rows.push_back({0, now, now, now + 1, step});
    network[0].push_back({1, now + compute_s[step], slow, slow + 0.5, step});
    network[1].push_back({1, now + 1, slow, slow + 0.5, step});
    now = slow + 0.5;
  }
  first.rows.insert(first.rows.end(), network[0].begin(), network[0].end());
  second.rows.insert(second.rows.end(), network[1].begin(), network[1].end());
  parts.classes = {first, second};
  auto schedule = schedule_of(parts);
  schedule->programs.resize(1);  // both ranks run the same program
  schedule->samples = 4;
  Trace trace = make_trace(parts, schedule);
  trace.classes[1].phase_program = 0;
  trace.run.jobs[0].phases[0].repeats = static_cast<int>(compute_s.size());
  return trace;
}

}  // namespace

TEST_CASE("steps are told from end to end, behind the warm-up") {
  struct Case {
    std::vector<double> compute_s;
    int warmup = 0, median_step = 0;
    double least_s = 0, lower_s = 0, median_s = 0, upper_s = 0, most_s = 0;
  };
  // A step takes the slower rank's computation plus 0.5 s.
  for (const Case& c : std::vector<Case>{
           {{1.5}, 0, 0, 2, 2, 2, 2, 2},
           {{9, 1.5, 2.5, 3.5}, 1, 2, 2, 2.5, 3, 3.5, 4},            // three steps: 2, 3 and 4 s
           {{9, 9, 4.5, 1.5, 2.5, 3.5}, 2, 4, 2, 2.75, 3, 4.25, 5},  // 5, 2, 3, 4: the third smallest is 4
       }) {
    const StepTimes times = step_times(steps_of(c.compute_s), 0, c.warmup);
    CAPTURE(c.compute_s, c.warmup);
    CHECK(times.first_step == c.warmup);
    CHECK(times.seconds.size() == c.compute_s.size() - static_cast<std::size_t>(c.warmup));
    CHECK(times.median_step == c.median_step);
    CHECK(times.least_s == Approx(c.least_s));
    CHECK(times.lower_quartile_s == Approx(c.lower_s));
    CHECK(times.median_s == Approx(c.median_s));
    CHECK(times.upper_quartile_s == Approx(c.upper_s));
    CHECK(times.most_s == Approx(c.most_s));
    CHECK(times.spread() == Approx((c.upper_s - c.lower_s) / c.median_s));
  }
  CHECK_THROWS_AS(step_times(steps_of({1, 1}), 0, 2), RunError);
}

TEST_CASE("a round of several optimizer steps is divided by them") {
  Trace trace = steps_of({1.5, 1.5});
  auto schedule = std::make_shared<Schedule>(*trace.run.jobs[0].phases[0].schedule);
  schedule->optimizer_steps = 4;
  trace.run.jobs[0].phases[0].schedule = schedule;
  CHECK(step_times(trace, 0, 1).median_s == Approx(0.5));
  // In a round, rank 0 computes for 1.5 s and rank 1 for 1 s.
  CHECK(seconds_by_op(trace, 0)[0].seconds == Approx((1.5 + 1) / 2 / 4));
}

TEST_CASE("a trace is cut behind a step, with its share of the bytes") {
  Trace trace = steps_of({1, 2, 3, 4});
  trace.bytes_total = 800;
  trace.link_use = {{0, 1, 400}};
  const Trace cut = up_to_step(trace, 1);
  CHECK(cut.spans.size() == 8);  // 2 ranks, 2 ops, 2 steps
  CHECK(cut.bytes_total == 400);
  CHECK(cut.link_use[0].bytes == 200);
  CHECK(cut.end_s == Approx(1.5 + 2.5));
  CHECK(last_step(cut, 0).begin_s == Approx(1.5));
  CHECK(last_step(cut, 0).end_s == Approx(4.0));
  // Step 1: rank 0 computes for 2 s, rank 1 computes for 1 s and waits for it; the sync takes 0.5 s.
  const Breakdown breakdown = break_down(cut, 0);
  CHECK(breakdown.compute_s == Approx(1.5));
  CHECK(breakdown.exposed_communication_s == Approx(0.5));
  CHECK(breakdown.other_s == Approx(0.5));
}

TEST_CASE("kinds of ops: a rank's mean, transfers from when all sides were ready") {
  const std::vector<OpSeconds> ops = seconds_by_op(steps_of({1, 1, 3}), 0);
  REQUIRE(ops.size() == 2);
  CHECK(ops[0].name == "forward");
  CHECK(ops[0].kind == "compute");
  CHECK(ops[0].seconds == Approx((3 + 1) / 2.0));
  CHECK(ops[1].name == "gradient sync");
  CHECK(ops[1].kind == "all-reduce");
  CHECK(ops[1].seconds == Approx(0.5));  // not the 2.5 s since rank 1 was ready
}

TEST_CASE("overlap is the share of communication during which the worker computes") {
  struct Case {
    double begin_s, end_s, communication_s, hidden_s;
  };
  // The rank computes in [0, 2] and [3, 4] and communicates in [begin_s, end_s].
  for (const Case& c : std::vector<Case>{
           {2, 3, 1, 0}, {1, 2, 1, 1}, {1, 3, 2, 1}, {1, 3.5, 2.5, 1.5}, {4, 5, 1, 0}, {2, 2, 0, 0}}) {
    CAPTURE(c.begin_s, c.end_s);
    TraceParts parts{1, 1, {}};
    ClassOf only{"worker", {0}, {compute("a"), compute("b"), all_reduce("sync")}, {}, {}};
    only.rows = {{0, 0, 0, 2}, {1, 2, 3, 4}, {2, 0, c.begin_s, c.end_s}};
    parts.classes = {only};
    const Overlap found = overlap(make_trace(parts), 0);
    CHECK(found.communication_s == Approx(c.communication_s));
    CHECK(found.hidden_s == Approx(c.hidden_s));
    CHECK(found.share() == Approx(c.communication_s > 0 ? c.hidden_s / c.communication_s : 0));
  }
}
