// Measures frames of a pipeline of 48 stages with 192 micro-batches, one row per stage, all visible.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QImage>

#include "benchmarks/gui_wait.hpp"
#include "gui/views/timeline/minimap.hpp"
#include "gui/views/timeline/timeline_canvas.hpp"
#include "gui/views/timeline/timeline_labels.hpp"
#include "gui/views/timeline/timeline_view.hpp"

using namespace rehearse::gui;

namespace {

constexpr int kStages = 48, kMicrobatches = 192;
constexpr Time kForward = 100'000, kBackward = 200'000, kRecompute = 100'000;

// Returns 1F1B with recomputation as for GPT-3, with the spans that the summary of each stage shows.
std::shared_ptr<const Timeline> pipeline() {
  auto timeline = std::make_shared<Timeline>();
  Timeline& t = *timeline;
  SpanColumns& spans = t.spans;
  t.strings = {"", "forward", "recompute", "backward", "pipeline bubble"};
  const auto span = [&](Time& now, Time length, Kind kind, Pass pass, std::uint32_t name, int microbatch) {
    if (length <= 0) return;
    spans.begin.push_back(now);
    spans.end.push_back(now += length);
    spans.kind.push_back(kind);
    spans.pass.push_back(pass);
    spans.name.push_back(name);
    spans.microbatch.push_back(microbatch);
    spans.critical.push_back(microbatch % kStages == static_cast<int>(t.processes.size()));
  };
  for (int stage = 0; stage < kStages; ++stage) {
    Process process;
    process.name = "stage " + std::to_string(stage) + ", data 0-15 (16 ranks)";
    process.stage = "stage " + std::to_string(stage);
    process.members = 16;
    process.first_track = stage;
    process.last_track = stage + 1;
    for (const int track : {stage, -1}) {  // the stage's own row and its summary
      const auto first = static_cast<SpanId>(spans.begin.size());
      const int row = static_cast<int>(t.rows.size());
      Time now = stage * kForward;
      int forward = 0;
      for (; forward < kStages - stage; ++forward)
        span(now, kForward, Kind::compute, Pass::forward, 1, forward);
      span(now, (kStages - 1 - stage) * (kBackward + kRecompute), Kind::bubble, Pass::none, 4, -1);
      for (int backward = 0; backward < kMicrobatches; ++backward) {
        span(now, kRecompute, Kind::compute, Pass::recompute, 2, backward);
        span(now, kBackward, Kind::compute, Pass::backward, 3, backward);
        if (forward < kMicrobatches)
          span(now, kForward, Kind::compute, Pass::forward, 1, forward++);
        else
          span(now, kForward, Kind::bubble, Pass::none, 4, -1);
      }
      t.rows.push_back({stage, track, first, static_cast<SpanId>(spans.begin.size())});
      if (track >= 0)
        t.tracks.push_back({"compute", stage, 0, row, row + 1});
      else
        process.summary_row = row;
    }
    t.processes.push_back(process);
  }
  spans.step.assign(spans.size(), 0);
  spans.fill_unknown();
  for (const Time end : spans.end) t.end = std::max(t.end, end);
  return timeline;
}

struct Window {
  Session session;
  ViewState state;
  TimelineView view{session, state};
  explicit Window(QSize size) {
    Run made;
    made.name = "gpt3-175b";
    made.timeline = pipeline();
    session.add(std::move(made));
    view.resize(size);
    view.show();
    wait_until_ready(view);
  }
};

// Paints frames that all differ, because the visible time range moves by one pixel each time.
void frames(benchmark::State& bench, Window& window, TimeRange visible) {
  QImage image(window.view.size(), QImage::Format_RGB32);
  const Time pixel = visible.length() / window.view.canvas().width();
  Time by = 0;
  for (auto _ : bench) {
    by = by == 0 ? pixel : 0;
    window.state.set_visible({visible.begin + by, visible.end + by}, false);
    window.view.canvas().render(&image);
    window.view.labels().render(&image);
  }
  bench.counters["stages"] = static_cast<double>(std::count_if(
      window.view.scene().lines().begin(), window.view.scene().lines().end(), [&](const Line& line) {
        return line.type == Line::Type::process && line.bottom() <= window.view.scene().canvas().height();
      }));
}

// Measures the pipeline in the room that windows of 1280x800 and 2560x1440 leave for the timeline: all of it,
// all with the critical path, and a part that is large enough for the micro-batches' numbers.
void pipeline_in_sight(benchmark::State& bench) {
  Window window(bench.range(0) == 0 ? QSize(930, 420) : QSize(2210, 1060));
  window.state.show_critical_path(bench.range(1) == 1);
  const TimeRange whole = window.state.whole();
  frames(
      bench, window,
      bench.range(1) == 2 ? TimeRange{whole.length() / 3, whole.length() / 3 + whole.length() / 20} : whole);
}
BENCHMARK(pipeline_in_sight)->ArgsProduct({{0, 1}, {0, 1, 2}})->Unit(benchmark::kMillisecond);

}  // namespace
