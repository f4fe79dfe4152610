// Tests what each rank does in a step, and stragglers, on hand-made timelines with figures computed by hand.
#include "gui/models/comparison/rank_times.hpp"
#include "tests/catch.hpp"
#include "tests/gui_timeline_builder.hpp"

namespace rehearse::gui {
namespace {

constexpr Time kUs = 1000;

// Four ranks sum gradients: three are ready after 60 us, rank 3 computes for 90 us; all end at 100 us. The
// last 20 us of the computation of the first three overlap with a transfer of their own.
std::shared_ptr<const Timeline> slow_rank(Timeline::Writer writer = Timeline::Writer::rehearse) {
  using enum Kind;
  TimelineBuilder b;
  for (int rank = 0; rank < 4; ++rank) {
    const Time computed = (rank == 3 ? 90 : 60) * kUs;
    b.process("rank " + std::to_string(rank)).track("compute");
    b.span("forward 0", 0, computed / 3, compute, Pass::forward, 0);
    b.span("backward 0", computed / 3, computed, compute, Pass::backward, 0);
    b.track("gradients");
    if (rank < 3) b.span("all-gather 0", 40 * kUs, 60 * kUs, communication);
    if (rank < 3) b.span("waiting for all-reduce bucket 0", 60 * kUs, 90 * kUs, waiting).op(7);
    b.span("all-reduce bucket 0", 90 * kUs, 100 * kUs, communication).op(7);
    b.summary().span("computing", 0, computed);
    if (rank < 3) b.span("waiting for a peer", 60 * kUs, 90 * kUs, waiting);
    b.span("exposed all-reduce", 90 * kUs, 100 * kUs, communication);
  }
  auto made = std::make_shared<Timeline>(*b.build());
  made->writer = writer;
  return made;
}

const std::atomic<bool> kGoOn{false};

}  // namespace

TEST_CASE("A rank's step is told apart, each instant once") {
  const RankTimes times = rank_times(run_of(slow_rank()), kGoOn);
  REQUIRE(times.ranks.size() == 4);
  const RankTime &first = times.ranks[0], &last = times.ranks[3];
  CHECK(first.name == "rank 0");
  CHECK(first.step_s() == Approx(100e-6));
  CHECK(first.of(RankPart::forward) == Approx(20e-6));
  CHECK(first.of(RankPart::backward) == Approx(40e-6));
  CHECK(first.of(RankPart::compute) == Approx(0).margin(1e-12));
  CHECK(first.of(RankPart::waiting) == Approx(30e-6));
  CHECK(first.of(RankPart::communication) == Approx(10e-6));
  CHECK(first.communication_s == Approx(30e-6));
  CHECK(first.hidden_s == Approx(20e-6));
  CHECK(first.overlap() == Approx(2.0 / 3));
  CHECK(last.computing_s() == Approx(90e-6));
  CHECK(last.of(RankPart::waiting) == 0);
  CHECK(last.overlap() == 0);
}

TEST_CASE("The rank that others wait for is named, with where and why") {
  const RankTimes times = rank_times(run_of(slow_rank()), kGoOn);
  for (int rank = 0; rank < 3; ++rank) CHECK(times.ranks[static_cast<std::size_t>(rank)].late_s == 0);
  CHECK(times.ranks[3].late_s == Approx(30e-6));
  CHECK(times.ranks[3].late_at == "all-reduce bucket");
  CHECK(times.stragglers ==
        "Straggler: Rank 3 is late; others wait 30.0 us a step (30.0 %) for it, mostly at all-reduce "
        "bucket; it computes 30.0 us longer than the median rank.");
}

TEST_CASE("Without stragglers it is said so, and one rank has none") {
  using enum Kind;
  TimelineBuilder b;
  for (int rank = 0; rank < 2; ++rank) {
    b.process("rank").track("compute").span("forward", 0, 90 * kUs, compute, Pass::forward);
    b.track("send").span("all-reduce", 90 * kUs, 100 * kUs, communication);
    b.summary().span("computing", 0, 90 * kUs).span("exposed", 90 * kUs, 100 * kUs, communication);
  }
  CHECK(rank_times(run_of(b.build()), kGoOn).stragglers ==
        "Stragglers: none; no rank keeps others waiting for more than 1.0 % of the step.");
  TimelineBuilder one;
  one.process("rank").track("compute").span("forward", 0, 90 * kUs).summary().span("computing", 0, 90 * kUs);
  CHECK(rank_times(run_of(one.build()), kGoOn).stragglers.empty());
}

TEST_CASE("Late arrivals that computing hides cost nobody anything") {
  using enum Kind;
  TimelineBuilder b;
  for (int rank = 0; rank < 3; ++rank) {
    b.process("rank").track("compute").span("backward", 0, 100 * kUs, compute, Pass::backward);
    b.track("gradients");
    if (rank < 2) b.span("waiting", 20 * kUs, 50 * kUs, waiting).op(1);
    b.span("all-reduce 0", 50 * kUs, 60 * kUs, communication).op(1);
    b.summary().span("computing", 0, 100 * kUs);
  }
  for (const RankTime& rank : rank_times(run_of(b.build()), kGoOn).ranks) CHECK(rank.late_s == 0);
}

TEST_CASE("The slowest stage of a pipeline sets the pace") {
  using enum Kind;
  TimelineBuilder b;
  for (int stage = 0; stage < 3; ++stage) {
    const Time computed = (stage == 1 ? 80 : 60) * kUs;
    b.process("stage " + std::to_string(stage) + " (4 ranks)", 4, std::to_string(stage)).track("compute");
    b.span("forward 0", 0, computed, compute, Pass::forward, 0);
    b.summary().span("computing", 0, computed);
    if (stage != 1) b.span("pipeline bubble", computed, 80 * kUs, bubble);
  }
  const RankTimes times = rank_times(run_of(b.build()), kGoOn);
  CHECK(times.ranks[0].name == "stage 0");
  CHECK(times.ranks[0].of(RankPart::bubble) == Approx(20e-6));
  CHECK(times.stragglers ==
        "Straggler: Stage 1 (4 ranks) is the slowest stage; it computes 80.00 us a step, 20.00 us (33.3 %) "
        "longer than the median rank.");
}

TEST_CASE("Stages that meet at the end of a pipeline are not late, and wait in the bubble") {
  using enum Kind;
  TimelineBuilder b;
  for (int stage = 0; stage < 2; ++stage) {
    const Time first = stage == 0 ? 60 * kUs : 0;
    b.process("stage", 1, std::to_string(stage)).track("compute").span("backward 0", first, first + 30 * kUs);
    b.track("gradients");
    if (stage == 1) b.span("waiting", 30 * kUs, 90 * kUs, waiting).op(3);
    b.span("all-reduce tied embedding", 90 * kUs, 95 * kUs, communication).op(3);
    b.track("more");
    if (stage == 0) b.span("send", 95 * kUs, 100 * kUs, communication);
    b.summary();
    if (stage == 0) b.span("pipeline bubble", 0, 60 * kUs, bubble);
    b.span("computing", first, first + 30 * kUs);
    if (stage == 1) b.span("pipeline bubble", 30 * kUs, 90 * kUs, bubble);
    b.span("exposed all-reduce", 90 * kUs, (stage == 0 ? 100 : 95) * kUs, communication);
  }
  auto made = std::make_shared<Timeline>(*b.build());
  made->writer = Timeline::Writer::rehearse;
  const RankTimes times = rank_times(run_of(made), kGoOn);
  for (const RankTime& rank : times.ranks) CHECK(rank.late_s == 0);
  CHECK(times.ranks[1].of(RankPart::bubble) == Approx(65e-6));  // until the step ends
  CHECK(times.ranks[1].of(RankPart::idle) == 0);
  CHECK(times.stragglers.rfind("Stragglers: none", 0) == 0);
}

TEST_CASE("What a profile does not tell is idle, by cause where one is known") {
  using enum Kind;
  TimelineBuilder b;
  b.process("rank 0, GPU 0").track("stream 7").span("gemm", 10 * kUs, 40 * kUs);
  b.summary().span("computing", 10 * kUs, 40 * kUs);
  b.span("host only", 40 * kUs, 60 * kUs, host).span("idle", 60 * kUs, 70 * kUs, waiting);
  b.process("rank 0: host").track("python").span("aten::mm", 0, 100 * kUs, host);
  auto made = std::make_shared<Timeline>(*b.build());
  made->writer = Timeline::Writer::pytorch;
  made->processes[1].device = false;
  const RankTimes times = rank_times(run_of(made), kGoOn);
  REQUIRE(times.ranks.size() == 1);
  CHECK(times.ranks[0].of(RankPart::host) == Approx(20e-6));
  CHECK(times.ranks[0].of(RankPart::waiting) == 0);
  CHECK(times.ranks[0].of(RankPart::idle) == Approx(50e-6));  // 10 marked, 40 without a span
  CHECK(times.ranks[0].step_s() == Approx(100e-6));
}

}  // namespace rehearse::gui
