// Measures frames of a topology of 96 nodes with 8 GPUs each, folded as initially and with all groups open,
// in windows of two sizes: after a change of the visible time, and while the picture is moved.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QImage>
#include <QMouseEvent>
#include <QTemporaryDir>
#include <sstream>

#include "gui/models/session/loader.hpp"
#include "gui/views/topology/topology_canvas.hpp"
#include "gui/views/topology/topology_view.hpp"
#include "simulator/commands/simulate/simulate.hpp"

using namespace rehearse::gui;

namespace {

struct Window {
  Session session;
  ViewState state;
  TopologyView view{session, state};
  Window() {
    const QTemporaryDir folder;
    const QString trace = folder.filePath("gpt3-175b.json.gz");
    std::istringstream in;
    std::ostringstream out;
    rehearse::run_simulate({REHEARSE_SCENARIOS "/gpt3-175b.toml", {}, {}, trace.toStdString()}, in, out, out);
    view.show();
    Loader loader(session);
    loader.open({trace});
    while (loader.busy() || !view.is_ready()) QApplication::processEvents(QEventLoop::WaitForMoreEvents);
    state.set_whole({0, session.current()->timeline->end});
  }
  void click(QPointF at) {
    for (const auto type : {QEvent::MouseButtonPress, QEvent::MouseButtonRelease}) {
      QMouseEvent event(type, at, view.canvas()->mapToGlobal(at), Qt::LeftButton,
                        type == QEvent::MouseButtonPress ? Qt::LeftButton : Qt::NoButton, Qt::NoModifier);
      QApplication::sendEvent(view.canvas(), &event);
    }
  }
  void open_all() {
    for (bool opened = true; opened;) {
      opened = false;
      for (const SceneVertex& vertex : view.canvas()->scene().vertices) {
        if (vertex.detail.isEmpty()) continue;
        click(vertex.box.center());  // rebuilds the scene
        opened = true;
        break;
      }
    }
  }
};

Window& window_of(const benchmark::State& bench) {
  static auto* const kWindow = new Window;
  kWindow->view.resize(static_cast<int>(bench.range(0)), static_cast<int>(bench.range(1)));
  QApplication::processEvents();
  kWindow->view.canvas()->fold_all();
  if (bench.range(2) != 0) kWindow->open_all();
  return *kWindow;
}

void tell(benchmark::State& bench, const Window& window) {
  bench.counters["lines"] = static_cast<double>(window.view.canvas()->scene().edges.size());
  bench.counters["boxes"] = static_cast<double>(window.view.canvas()->scene().vertices.size());
}

void topology_of_other_time(benchmark::State& bench) {
  Window& w = window_of(bench);
  QImage image(w.view.canvas()->size(), QImage::Format_RGB32);
  const TimeRange whole = w.state.whole();
  const Time length = whole.length() / 20;
  Time begin = whole.begin;
  for (auto _ : bench) {
    begin = begin + 2 * length > whole.end ? whole.begin : begin + length / 3;
    bench.PauseTiming();
    w.state.set_visible({begin, begin + length}, false);
    bench.ResumeTiming();
    w.view.canvas()->render(&image);
  }
  tell(bench, w);
}

void topology_moved(benchmark::State& bench) {
  Window& w = window_of(bench);
  QImage image(w.view.canvas()->size(), QImage::Format_RGB32);
  w.state.set_visible(w.state.whole(), false);
  const QPointF middle = w.view.canvas()->scene().graph.center();
  bool in = true;
  for (auto _ : bench) {
    w.view.canvas()->zoom_by(in ? 1.3 : 1 / 1.3, middle + QPointF(20, 10));
    in = !in;
    w.view.canvas()->render(&image);
  }
  tell(bench, w);
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"width", "height", "open"});
  for (const int open : {0, 1})
    for (const auto& [width, height] : {std::pair(1280, 800), std::pair(2560, 1440)})
      bench->Args({width, height, open});
  bench->Unit(benchmark::kMillisecond);
}

BENCHMARK(topology_of_other_time)->Apply(sizes);
BENCHMARK(topology_moved)->Apply(sizes);

}  // namespace
