// Measures a timeline of 10,000 ranks, none of them folded, at 1920x1080: the layout of its lines, and frames
// while it is scrolled, zoomed and hovered over.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QImage>

#include "benchmarks/gui_wait.hpp"
#include "gui/views/timeline/timeline_canvas.hpp"
#include "gui/views/timeline/timeline_labels.hpp"
#include "gui/views/timeline/timeline_view.hpp"

using namespace rehearse::gui;

namespace {

constexpr int kRanks = 10'000, kStages = 100, kSpans = 40;

// Returns ranks that compute, send to the next rank, and reduce gradients.
std::shared_ptr<const Timeline> ring() {
  auto timeline = std::make_shared<Timeline>();
  Timeline& t = *timeline;
  SpanColumns& spans = t.spans;
  t.strings = {"", "forward", "backward", "send", "gradients", "compute", "waiting for the pipeline"};
  const auto span = [&](Time begin, Time length, Kind kind, Pass pass, std::uint32_t name, int microbatch) {
    spans.begin.push_back(begin);
    spans.end.push_back(begin + length);
    spans.kind.push_back(kind);
    spans.pass.push_back(pass);
    spans.name.push_back(name);
    spans.microbatch.push_back(microbatch);
    spans.critical.push_back(microbatch == 3);
  };
  std::vector<Row> summaries;
  for (int rank = 0; rank < kRanks; ++rank) {
    Process process;
    process.name = "rank " + std::to_string(rank);
    process.stage = std::to_string(rank % kStages);
    process.first_track = static_cast<int>(t.tracks.size());
    process.last_track = process.first_track + 3;
    for (const char* name : {"compute", "send forward", "gradients"}) {
      const int row = static_cast<int>(t.rows.size());
      t.tracks.push_back({name, rank, 0, row, row + 1});
      const auto first = static_cast<SpanId>(spans.begin.size());
      for (int i = 0; i < kSpans; ++i) {
        const Time begin = i * 1000 + rank % kStages * 100;
        if (name[0] == 'c')
          span(begin, 900, Kind::compute, i % 2 ? Pass::backward : Pass::forward, i % 2 ? 2 : 1, i / 2);
        else if (name[0] == 's')
          span(begin + 900, 80, Kind::communication, Pass::none, 3, i / 2);
        else if (i == kSpans - 1)
          span(begin + 1000, 2000, Kind::communication, Pass::none, 4, -1);
      }
      t.rows.push_back({rank, row, first, static_cast<SpanId>(spans.begin.size())});
      if (name[0] == 's' && rank > 0) t.flows.push_back({first - static_cast<SpanId>(2 * kSpans + 1), first});
    }
    t.processes.push_back(process);
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto first = static_cast<SpanId>(spans.begin.size());
    for (int i = 0; i < kSpans; ++i) {
      const Time begin = i * 1000 + rank % kStages * 100;
      span(begin, 900, Kind::compute, Pass::none, 5, -1);
      span(begin + 900, 100, Kind::bubble, Pass::none, 6, -1);
    }
    t.processes[static_cast<std::size_t>(rank)].summary_row = static_cast<int>(t.rows.size());
    t.rows.push_back({rank, -1, first, static_cast<SpanId>(spans.begin.size())});
  }
  spans.step.assign(spans.size(), 0);
  spans.fill_unknown();
  for (const Time end : spans.end) t.end = std::max(t.end, end);
  std::sort(t.flows.begin(), t.flows.end(), [](const Flow& a, const Flow& b) { return a.from < b.from; });
  for (std::uint32_t i = 0; i < t.flows.size(); ++i) t.flows_to.push_back(i);
  return timeline;
}

struct Window {
  Session session;
  ViewState state;
  TimelineView view{session, state};
  int run = 0;
  Window() {
    Run made;
    made.name = "ring";
    made.timeline = ring();
    run = session.add(std::move(made));
    view.resize(1920, 1080);
    view.show();
    wait_until_ready(view);
  }
  void draw() {
    canvas_image.fill(Qt::white);
    view.canvas().render(&canvas_image);
    view.labels().render(&labels_image);
  }
  QImage canvas_image{1700, 1000, QImage::Format_RGB32}, labels_image{230, 1000, QImage::Format_RGB32};
};

std::set<ViewState::ProcessRef> all_ranks(int run) {
  std::set<ViewState::ProcessRef> all;
  for (int p = 0; p < kRanks; ++p) all.emplace(run, p);
  return all;
}

Window& window() {
  static auto* const kWindow = new Window;
  Window& w = *kWindow;
  w.state.clear_selection();
  w.state.set_search({});
  w.state.set_grouping(Grouping::none);
  w.state.set_all_collapsed(std::set<ViewState::ProcessRef>{}, all_ranks(w.run));  // shows all tracks
  std::set<GroupRef> stages;
  for (int s = 0; s < kStages; ++s) stages.insert({w.run, Grouping::stage, std::to_string(s)});
  w.state.set_all_collapsed(std::set<GroupRef>{}, stages);
  w.view.scene().set_row_height(20);
  w.state.show_critical_path(false);
  w.state.fit();
  w.view.scene().set_scroll(0);
  wait_until_ready(w.view);
  return w;
}

void ranks_laid_out(benchmark::State& bench) {
  Window& w = window();
  int height = 20;
  for (auto _ : bench) {
    height = height == 20 ? 24 : 20;
    w.view.scene().set_row_height(height);
  }
  w.view.scene().set_row_height(20);
  bench.counters["lines"] = static_cast<double>(w.view.scene().lines().size());
}
BENCHMARK(ranks_laid_out)->Unit(benchmark::kMillisecond);

void ranks_collapsed_and_expanded(benchmark::State& bench) {
  Window& w = window();
  const std::set<ViewState::ProcessRef> all = all_ranks(w.run), none;
  bool collapse = true;
  for (auto _ : bench) {
    w.state.set_all_collapsed(collapse ? all : none, collapse ? none : all);
    collapse = !collapse;
  }
}
BENCHMARK(ranks_collapsed_and_expanded)->Unit(benchmark::kMillisecond);

void ranks_grouped(benchmark::State& bench) {
  Window& w = window();
  bool group = true;
  for (auto _ : bench) {
    w.state.set_grouping(group ? Grouping::stage : Grouping::none);
    group = !group;
  }
}
BENCHMARK(ranks_grouped)->Unit(benchmark::kMillisecond);

void ranks_filtered(benchmark::State& bench) {
  Window& w = window();
  bool filter = true;
  for (auto _ : bench) {
    w.state.set_filter(filter ? "rank 12" : "");
    filter = !filter;
  }
  w.state.set_filter({});
}
BENCHMARK(ranks_filtered)->Unit(benchmark::kMillisecond);

enum Look { plain, with_area, with_path, with_hits, groups_collapsed, groups_with_hits, groups_with_area };

void prepare(Window& w, Look look) {
  if (look >= groups_collapsed) {
    w.state.set_grouping(Grouping::stage);
    std::set<GroupRef> collapsed, expanded;
    for (int s = 0; s < kStages; ++s)
      (s % 2 == 0 ? collapsed : expanded).insert({w.run, Grouping::stage, std::to_string(s)});
    w.state.set_all_collapsed(collapsed, expanded);
  }
  if (look == with_path) w.state.show_critical_path(true);
  if (look == with_hits || look == groups_with_hits) w.state.set_search("backward");
  if (look == with_area || look == groups_with_area) {
    Area area;
    const Time length = w.state.whole().length();
    area.range = {length / 4, length / 2};
    for (int r = 0; r < 3 * kRanks; ++r) area.rows.emplace_back(w.run, r);
    w.state.select(area);
  }
  wait_until_ready(w.view);
}

void ranks_scrolled(benchmark::State& bench) {
  Window& w = window();
  prepare(w, static_cast<Look>(bench.range(0)));
  int y = 0;
  for (auto _ : bench) {
    y = y + 137 > w.view.scene().greatest_scroll() ? 0 : y + 137;
    w.view.scene().set_scroll(y);
    w.draw();
  }
}
BENCHMARK(ranks_scrolled)->DenseRange(plain, groups_with_area)->Unit(benchmark::kMillisecond);

void ranks_zoomed(benchmark::State& bench) {
  Window& w = window();
  prepare(w, static_cast<Look>(bench.range(0)));
  const TimeRange whole = w.state.whole();
  Time length = whole.length();
  for (auto _ : bench) {
    length = length < 2000 ? whole.length() : length * 4 / 5;
    w.state.set_visible({whole.length() / 3, whole.length() / 3 + length}, false);
    w.draw();
  }
}
BENCHMARK(ranks_zoomed)->DenseRange(plain, groups_with_area)->Unit(benchmark::kMillisecond);

// Measures mouse moves over a timeline with a selected span and its arrows.
void ranks_pointed_at(benchmark::State& bench) {
  Window& w = window();
  const SpanId send = w.session.run(w.run)->timeline->flows[kRanks / 2].from;
  w.state.select(SpanRef{w.run, send});
  w.view.scene().reveal({w.run, send});
  Time time = 0;
  for (auto _ : bench) {
    time = (time + 100) % w.state.whole().length();
    w.state.set_cursor(time);
    w.view.canvas().render(&w.canvas_image);
  }
}
BENCHMARK(ranks_pointed_at)->Unit(benchmark::kMillisecond);

}  // namespace
