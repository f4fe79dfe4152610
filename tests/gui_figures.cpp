// Tests the figures of a run: from the trace's own result, from a profiler's annotations, and as the
// simulator computes them.
#include <fmt/format.h>

#include "gui/models/comparison/figures.hpp"
#include "gui/models/timeline/step_windows.hpp"
#include "models/text/error.hpp"
#include "simulator/trace/causes.hpp"
#include "tests/catch.hpp"
#include "tests/gui_recorded.hpp"
#include "tests/gui_timeline_builder.hpp"

using namespace rehearse;
using namespace rehearse::gui;

namespace {

constexpr Time kMillisecond = 1'000'000;

double total_s(const RunFigures& figures) {
  double sum = 0;
  for (const BreakdownPart& part : figures.breakdown) sum += part.seconds;
  return sum;
}

const char* const kResult = R"({"generator": "rehearse", "result": {
  "step_time_s": 0.01, "samples_per_s": 3200, "tokens_per_s": 6400, "devices": 4,
  "model_tflops_per_device": 12.5, "mfu": 0.4,
  "breakdown_s": {"compute": 0.006, "exposed_communication": 0.003, "data_stall": 0, "pipeline_bubble": 0.0005,
                  "other": 0.0005},
  "critical_path": {"segments": [{"kind": "backward", "seconds": 0.005}, {"kind": "gradient sync", "seconds": 0.004},
                                 {"kind": "forward", "seconds": 0.001}],
                    "ten_percent_faster": [{"resource": "network_links", "saved_s": 0.0003, "path_saved_s": 0.0002},
                                           {"resource": "compute", "saved_s": 0.0005, "path_saved_s": 0.0005}]},
  "memory_bytes": {"weights": 1, "total": 20, "capacity": 10, "fits": false},
  "rests_on": {"measured": [], "published": ["a of x: y", "b of x"], "guessed": ["kernel overhead of a100: z"]}
}})";

}  // namespace

TEST_CASE("Figures are read from the result that the trace holds") {
  TimelineBuilder builder;
  builder.process("rank 0").track("compute");
  builder.span("f", 0, 10 * kMillisecond, Kind::compute).step(0);
  builder.span("f", 10 * kMillisecond, 20 * kMillisecond, Kind::compute).step(1);
  builder.timeline().writer = Timeline::Writer::rehearse;
  builder.timeline().other_data = kResult;
  const RunFigures figures = figures_of(builder.done());
  CHECK(figures.step == TimeRange{10 * kMillisecond, 20 * kMillisecond});
  CHECK(figures.steps == 1);
  CHECK(figures.step_time_s == 0.01);
  CHECK(figures.devices == 4);
  CHECK(figures.mfu == 0.4);
  CHECK(total_s(figures) == Approx(0.01));
  REQUIRE(figures.breakdown.size() == 4);  // nothing waits for data
  CHECK(figures.breakdown[0].name == "compute");
  CHECK(figures.breakdown[1].name == "pipeline bubble");
  CHECK(figures.breakdown[2].name == "exposed communication");
  CHECK(figures.breakdown[3].name == "waiting for slower ranks");
  CHECK(figures.bottleneck == "Bottleneck: exposed communication, 30.0 % of the step.");
  CHECK(figures.critical_path ==
        "Critical path: compute 60.0 %, gradient sync 40.0 %; 10 % faster compute would save 5.0 %, network "
        "3.0 %.");
  CHECK(figures.path_by_kind.size() == 3);
  CHECK(figures.memory.total == 20);
  CHECK_FALSE(figures.memory.fits);
  CHECK(figures.rests_on == "2 published figures, 1 guess (kernel overhead of a100)");
}

TEST_CASE("Broken results give what can be had from the spans") {
  for (const char* other : {"", "[]", "{\"result\": 5}", "{\"result\": {\"step_time_s\": \"x\"}}", "{\"resu",
                            R"({"result": {"critical_path": [1], "rests_on": 4, "memory_bytes": null}})"}) {
    TimelineBuilder builder;
    builder.process("rank 0").track("compute");
    builder.span("f", 0, 6 * kMillisecond, Kind::compute).step(0);
    builder.span("g", 6 * kMillisecond, 10 * kMillisecond, Kind::communication).step(0);
    builder.summarize();
    builder.timeline().writer = Timeline::Writer::rehearse;
    builder.timeline().other_data = other;
    const RunFigures figures = figures_of(builder.done());
    CAPTURE(other);
    CHECK(figures.step_time_s == Approx(0.01));
    REQUIRE(figures.breakdown.size() == 2);
    CHECK(figures.breakdown[0].seconds == Approx(0.006));
    CHECK(figures.breakdown[1].name == "exposed communication");
    CHECK(figures.bottleneck == "Bottleneck: exposed communication, 40.0 % of the step.");
  }
}

TEST_CASE("The step that is told of") {
  // Steps of 10, 30, 20 and 40 ms, one after another.
  TimelineBuilder builder;
  builder.process("rank 0").track("compute");
  const std::vector<Time> ends = {0, 10, 40, 60, 100};
  for (int step = 0; step < 4; ++step)
    builder.span("f", ends[step] * kMillisecond, ends[step + 1] * kMillisecond, Kind::compute).step(step);
  const Timeline& timeline = builder.done();
  struct Case {
    std::optional<int> warmup;
    TimeRange step;
  };
  const std::vector<Case> cases = {
      {std::nullopt, {60 * kMillisecond, 100 * kMillisecond}},  // predicted: the last step
      {0, {40 * kMillisecond, 60 * kMillisecond}},  // of an even number, the faster one in the middle
      {1, {10 * kMillisecond, 40 * kMillisecond}},
      {3, {60 * kMillisecond, 100 * kMillisecond}},
      {9, {60 * kMillisecond, 100 * kMillisecond}}};
  for (const Case& c : cases) CHECK(told_step(timeline, c.warmup) == c.step);
  CHECK_FALSE(told_step(Timeline{}, 0));
}

TEST_CASE("Steps that a profiler marked are told as their mean, without the first of three") {
  for (const int steps : {1, 2, 3, 5}) {
    TimelineBuilder builder;
    for (const char* rank : {"rank 0", "rank 1"}) {
      builder.process(rank).track("python");
      for (int i = 0; i < steps; ++i)
        builder.span(fmt::format("ProfilerStep#{}", i + 7), i * 10 * kMillisecond,
                     (i + 1) * 10 * kMillisecond, Kind::annotation);
      builder.track("stream 7");
      for (int i = 0; i < steps; ++i) {
        builder.span("gemm", i * 10 * kMillisecond, (i * 10 + (i == 0 ? 9 : 5)) * kMillisecond,
                     Kind::compute);
        builder.span("ncclAllReduce", (i * 10 + 9) * kMillisecond, (i * 10 + 10) * kMillisecond,
                     Kind::communication);
      }
    }
    builder.summarize();
    builder.timeline().writer = Timeline::Writer::pytorch;
    const RunFigures figures = figures_of(builder.done());
    CAPTURE(steps);
    const int counted = steps >= 3 ? steps - 1 : steps;
    CHECK(figures.steps == counted);
    CHECK(figures.devices == 2);
    CHECK(figures.step_time_s == Approx(0.01));
    CHECK(figures.step.begin == (steps - counted) * 10 * kMillisecond);
    CHECK(total_s(figures) == Approx(0.01));
    const double compute_s = steps >= 3 ? 0.005 : (0.009 + 0.005 * (steps - 1)) / steps;
    CHECK(figures.breakdown[0].seconds == Approx(compute_s));
    CHECK(figures.breakdown[1].seconds == Approx(0.001));
    CHECK((figures.rests_on.find("without ProfilerStep#7") != std::string::npos) == (steps >= 3));
  }
}

TEST_CASE("Without marks a profiler's trace is told as a whole") {
  TimelineBuilder builder;
  builder.process("rank 0").track("stream 7");
  builder.span("gemm", 0, 6 * kMillisecond, Kind::compute);
  builder.span("Memcpy HtoD", 8 * kMillisecond, 10 * kMillisecond, Kind::copy);
  builder.summarize();
  builder.timeline().writer = Timeline::Writer::pytorch;
  const RunFigures figures = figures_of(builder.done());
  CHECK(figures.step_time_s == Approx(0.01));
  REQUIRE(figures.breakdown.size() == 3);
  CHECK(figures.breakdown[1].name == "memory copies");
  CHECK(figures.breakdown[2].name == "unrecorded time");
  CHECK(figures.breakdown[2].seconds == Approx(0.002));
}

TEST_CASE("What the simulator's tools make of a measured run of ours") {
  const std::string path = gui::test::recorded("star-4-16mb-pipeline");
  const std::shared_ptr<const Judged> judged = judge(read_run(path));
  const Timeline timeline = gui::test::timeline_of(path);
  const RunFigures figures = figures_of(timeline, *judged);
  CHECK(figures.step_time_s == judged->metrics.step_time_s);
  CHECK(static_cast<double>(figures.step.length()) * 1e-9 == Approx(figures.step_time_s).epsilon(1e-6));
  CHECK(total_s(figures) == Approx(figures.step_time_s).epsilon(1e-9));
  CHECK(figures.devices == 4);
  double path_s = 0;
  for (const auto& [kind, length] : figures.path_by_kind) path_s += length;
  CHECK(path_s == Approx(figures.step_time_s).epsilon(1e-9));
  CHECK(figures.bottleneck.rfind("Bottleneck: ", 0) == 0);
  CHECK(figures.critical_path.rfind("Critical path: ", 0) == 0);
  CHECK(figures.rests_on.empty());  // it was measured
  for (const PathSegment& segment : judged->path)
    CHECK((segment.row < judged->step.spans.size() || segment.row == kNoRow));

  RecordedRun failed = read_run(path);
  failed.trace.job_failed = {true};
  CHECK_THROWS_AS(judge(std::move(failed)), RunError);
}

TEST_CASE("The window finds the step of a trace by itself, and its figures are near those of the result") {
  for (const char* name : {"star-4-16mb-pipeline", "star-4-16mb-ring", "tree-2to1-8-16mb-data-x-pipeline"}) {
    const std::string path = gui::test::recorded(name);
    Timeline timeline = gui::test::timeline_of(path);
    const RunFigures judged = figures_of(timeline, *judge(read_run(path))), told = figures_of(timeline);
    CAPTURE(name);
    CHECK(std::abs(told.step.begin - judged.step.begin) <= 1);  // ns
    CHECK(std::abs(told.step.end - judged.step.end) <= 1);
    CHECK(told.step_time_s == Approx(judged.step_time_s));
    CHECK(total_s(told) == Approx(judged.step_time_s));
    timeline.other_data.clear();  // as if cut off: only warm-up and steps are unknown
    const RunFigures spans = figures_of(timeline);
    CHECK(spans.devices == judged.devices);
    CHECK(total_s(spans) == Approx(spans.step_time_s));
    REQUIRE_FALSE(spans.breakdown.empty());
    // This breakdown is that of another step.
    CHECK(spans.breakdown[0].seconds == Approx(judged.breakdown[0].seconds).epsilon(0.15));
  }
}

TEST_CASE("Profiles are told of as far as their spans go") {
  for (const char* name : {"ddp-gloo-rank0.json.gz", "gpu-kernels.json"}) {
    const Timeline timeline = gui::test::timeline_of(std::string(REHEARSE_TESTS_DIR) + "/traces/" + name);
    const RunFigures figures = figures_of(timeline);
    CAPTURE(name);
    CHECK(figures.step_time_s > 0);
    CHECK(figures.step.length() > 0);
    CHECK(total_s(figures) == Approx(figures.step_time_s).epsilon(1e-6));
    CHECK_FALSE(figures.bottleneck.empty());
    CHECK_FALSE(figures.rests_on.empty());
    CHECK(figures.devices == 1);  // a host next to its GPU is not a device
    if (std::string_view(name) == "gpu-kernels.json") {
      // ProfilerStep#3 and #4 of its host: 990 us each, the second 1,000.5 us after the first.
      CHECK(figures.step.length() == 1'990'500);
      CHECK(figures.step_time_s == Approx(1'990'500e-9 / 2));
    }
    CHECK(std::none_of(figures.breakdown.begin(), figures.breakdown.end(),
                       [](const BreakdownPart& part) { return part.name == "host only"; }));
  }
}
