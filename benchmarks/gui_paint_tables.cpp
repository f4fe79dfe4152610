// Measures tables of results: a sweep of many lines and a validation of many runs, when shown and under the
// mouse. "longest_ms" is the longest time for which the window was unresponsive.
#include <benchmark/benchmark.h>

#include <fmt/format.h>

#include <QApplication>
#include <QGraphicsView>
#include <QMouseEvent>
#include <algorithm>
#include <chrono>

#include "gui/models/tables/accuracy_table.hpp"
#include "gui/views/tables/accuracy_view.hpp"
#include "gui/views/tables/scaling_view.hpp"

using namespace rehearse::gui;

namespace {

// Returns five curves with one point per number of nodes, in `lines` lines.
ReadSweep sweep_of_lines(int lines) {
  ReadSweep read;
  read.sweep.name = "sweep.csv";
  read.sweep.varied = {"cluster.nodes", "strategy.all_reduce"};
  for (int i = 0; i < lines; ++i) {
    SweepPoint& point = read.sweep.points.emplace_back();
    const int nodes = i / 5 + 1;
    point.line = i + 2;
    point.number = std::to_string(i + 1);
    point.varied = {std::to_string(nodes), fmt::format("way {}", i % 5)};
    point.status = "ok";
    point.step_time_s = 0.1 + 1e-6 * (i % 97);
    point.devices = 8.0 * nodes;
    point.samples_per_s = 32 * point.devices / point.step_time_s;
    point.memory_bytes = 1e10;
  }
  read.rows = rows_of(read.sweep);
  return read;
}

AccuracyTable validation_of(int runs) {
  AccuracyTable table;
  for (int i = 0; i < runs; ++i) {
    AccuracyPoint& point = table.points.emplace_back();
    point.run = fmt::format("run {}", i);
    point.topology = fmt::format("topology {}", i % 7);
    point.strategy = fmt::format("strategy {}", i % 5);
    point.measured_s = 0.01 * (1 + i % 1000);
    point.predicted_s = point.measured_s * (0.9 + 0.0002 * (i * 7919 % 1000));
  }
  return table;
}

template <class Work>
double time_ms(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

template <typename View>
struct Window {
  Session session;
  ViewState state;
  View view{session, state};
  Window() {
    view.resize(1280, 800);
    view.show();
    QApplication::processEvents();
  }
  // Processes events until `done` returns true and the view is painted. Returns the longest time that one
  // round of event processing took.
  template <class Done>
  double settle_ms(Done done) {
    double longest_ms = 0;
    for (bool was_done = false; !was_done;) {
      was_done = done();
      longest_ms = std::max(longest_ms, time_ms([] { QApplication::processEvents(); }));
    }
    return longest_ms;
  }
  void move(QPointF at) {
    auto* viewport = view.template findChild<QGraphicsView*>()->viewport();
    QMouseEvent event(QEvent::MouseMove, at, viewport->mapToGlobal(at), Qt::NoButton, Qt::NoButton,
                      Qt::NoModifier);
    QApplication::sendEvent(viewport, &event);
  }
};

void sweep_shown(benchmark::State& bench) {
  const ReadSweep read = sweep_of_lines(static_cast<int>(bench.range(0)));
  double longest_ms = 0;
  for (auto _ : bench) {
    bench.PauseTiming();
    Window<ScalingView> window;
    ReadSweep copy = read;
    bench.ResumeTiming();
    longest_ms = std::max(longest_ms, time_ms([&] { window.view.show_sweep("sweep.csv", std::move(copy)); }));
    longest_ms = std::max(longest_ms, window.settle_ms([&] { return !window.view.curves().empty(); }));
  }
  bench.counters["longest_ms"] = longest_ms;
}

void mouse_over_a_sweep(benchmark::State& bench) {
  Window<ScalingView> window;
  window.view.show_sweep("sweep.csv", sweep_of_lines(static_cast<int>(bench.range(0))));
  window.settle_ms([&] { return !window.view.curves().empty(); });
  int x = 0;
  for (auto _ : bench) window.move({300.0 + x++ % 200, 200});
}

void validation_shown(benchmark::State& bench) {
  const AccuracyTable table = validation_of(static_cast<int>(bench.range(0)));
  double longest_ms = 0;
  for (auto _ : bench) {
    bench.PauseTiming();
    Window<AccuracyView> window;
    bench.ResumeTiming();
    longest_ms = std::max(longest_ms, time_ms([&] { window.view.show_validation("validation.csv", table); }));
    longest_ms = std::max(longest_ms, window.settle_ms([] { return true; }));
  }
  bench.counters["longest_ms"] = longest_ms;
}

void mouse_over_a_validation(benchmark::State& bench) {
  Window<AccuracyView> window;
  window.view.show_validation("validation.csv", validation_of(static_cast<int>(bench.range(0))));
  window.settle_ms([] { return true; });
  int x = 0;
  for (auto _ : bench) window.move({300.0 + x++ % 200, 200});
}

}  // namespace

BENCHMARK(sweep_shown)->Arg(5'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(mouse_over_a_sweep)->Arg(5'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(validation_shown)->Arg(100)->Arg(5'000)->Unit(benchmark::kMillisecond);
BENCHMARK(mouse_over_a_validation)->Arg(100)->Arg(5'000)->Unit(benchmark::kMillisecond);
