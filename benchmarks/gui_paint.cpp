// Measures frames of a timeline of 10 million spans in 40 rows at 1920x1080 at several zoom levels, and the
// time from the request to open a file until its spans are on the screen.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QImage>
#include <QSettings>
#include <QTemporaryDir>
#include <random>

#include "benchmarks/gui_trace_file.hpp"
#include "benchmarks/gui_wait.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/timeline/timeline_canvas.hpp"
#include "gui/views/timeline/timeline_view.hpp"
#include "gui/views/window/main_window.hpp"

using namespace rehearse::gui;

namespace {

constexpr int kRows = 40, kSpansPerRow = 250'000;

// Returns the compute streams of a pipeline: forward, backward and waits of random lengths.
std::shared_ptr<const Timeline> synthetic() {
  auto timeline = std::make_shared<Timeline>();
  Timeline& t = *timeline;
  SpanColumns& spans = t.spans;
  for (int i = 0; i < 512; ++i)
    t.strings.push_back((i % 2 ? "backward " : "forward ") + std::to_string(i / 2));
  std::mt19937 random(1);
  const std::size_t count = std::size_t{kRows} * kSpansPerRow;
  spans.begin.reserve(count);
  spans.end.reserve(count);
  Process process;
  process.name = "rank 0";
  process.last_track = kRows;
  t.processes.push_back(process);
  for (int r = 0; r < kRows; ++r) {
    Track track;
    track.name = "stream " + std::to_string(r);
    track.first_row = r;
    track.last_row = r + 1;
    t.tracks.push_back(track);
    const auto first = static_cast<SpanId>(spans.begin.size());
    Time at = 0;
    for (int i = 0; i < kSpansPerRow; ++i) {
      at += static_cast<Time>(random() % 2000);
      const Time length = 1000 + static_cast<Time>(random() % 20'000);
      spans.begin.push_back(at);
      spans.end.push_back(at + length);
      at += length;
      const bool waits = random() % 8 == 0;
      spans.kind.push_back(waits ? Kind::waiting : Kind::compute);
      spans.pass.push_back(waits ? Pass::none : i % 2 ? Pass::backward : Pass::forward);
      spans.name.push_back(1 + static_cast<std::uint32_t>(i % 512));
      spans.microbatch.push_back(i % 512 / 2);
    }
    t.rows.push_back({0, r, first, static_cast<SpanId>(spans.begin.size())});
    t.end = std::max(t.end, at);
  }
  spans.step.assign(spans.size(), 0);
  spans.fill_unknown();
  return timeline;
}

struct Window {
  Session session;
  ViewState state;
  TimelineView view{session, state};
  Window() {
    Run run;
    run.name = "synthetic";
    run.timeline = synthetic();
    session.add(std::move(run));
    view.resize(1920, 1080);
    view.show();
    wait_until_ready(view);
  }
};

Window& window() {
  static auto* const kWindow = new Window;
  return *kWindow;
}

// Measures a frame after a pan, which repaints the entire canvas.
void paint_frame(benchmark::State& bench) {
  Window& w = window();
  const TimeRange whole = w.state.whole();
  const Time length = whole.length() / bench.range(0);
  QImage image(w.view.canvas().size(), QImage::Format_RGB32);
  int rows = 0;
  for (const Line& line : w.view.scene().lines()) rows += line.row >= 0 && line.y < w.view.canvas().height();
  Time begin = whole.begin + whole.length() / 3;
  if (begin + length > whole.end) begin = whole.begin;
  for (auto _ : bench) {
    begin += std::max<Time>(1, length / 200);
    if (begin + length > whole.end + length / 2) begin = whole.begin;
    w.state.set_visible({begin, begin + length}, false);
    w.view.canvas().render(&image);
  }
  bench.counters["rows"] = rows;
}
BENCHMARK(paint_frame)
    ->Arg(1)
    ->Arg(10)
    ->Arg(100)
    ->Arg(1000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMillisecond);

void mipmaps(benchmark::State& bench) {
  static const auto kTimeline = synthetic();
  for (auto _ : bench) benchmark::DoNotOptimize(make_mipmaps(*kTimeline, false));
}
BENCHMARK(mipmaps)->Unit(benchmark::kMillisecond);

// Measures the time from the request to the first frame in an open window.
void file_to_screen(benchmark::State& state) {
  const TraceFile file(state.range(0), false);
  MainWindow window;
  window.set_theme(Theme::light);
  window.resize(1920, 1080);
  window.show();
  QApplication::processEvents();
  for (auto _ : state) {
    int opened = 0;
    const auto connection =
        QObject::connect(&window.loader(), &Loader::opened, [&](int run) { opened = run; });
    window.open_files({QString::fromStdString(file.path())});
    while (opened == 0) QApplication::processEvents(QEventLoop::WaitForMoreEvents);
    benchmark::DoNotOptimize(window.grab());
    state.PauseTiming();
    QObject::disconnect(connection);
    while (!window.settled()) QApplication::processEvents();
    window.session().remove(opened);
    QApplication::processEvents();
    state.ResumeTiming();
  }
}

BENCHMARK(file_to_screen)->Arg(100'000)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  const QTemporaryDir settings;  // isolated from the user's settings
  QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, settings.path());
  QApplication::setStyle("Fusion");
  QApplication::setPalette(palette_of(Theme::light));
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
