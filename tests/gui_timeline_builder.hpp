// Builds timelines by hand for tests of models and views.
#pragma once

#include <cmath>

#include "gui/models/runs/session.hpp"

namespace rehearse::gui {

// Adds ranks, streams and spans in call order; the spans of a row must be ordered by time.
class TimelineBuilder {
public:
  TimelineBuilder& process(const std::string& name, int members = 1, const std::string& stage = {}) {
    Process process;
    process.name = name;
    process.pid = static_cast<std::int64_t>(made_.processes.size()) + 1;
    process.members = members;
    process.stage = stage;
    process.first_track = process.last_track = static_cast<int>(made_.tracks.size());
    made_.processes.push_back(process);
    return *this;
  }
  TimelineBuilder& track(const std::string& name) {
    Track track;
    track.name = name;
    track.process = static_cast<int>(made_.processes.size()) - 1;
    track.first_row = track.last_row = static_cast<int>(made_.rows.size());
    made_.tracks.push_back(track);
    made_.processes.back().last_track = static_cast<int>(made_.tracks.size());
    return row();
  }
  // Adds another row to the current track.
  TimelineBuilder& row() {
    const auto at = static_cast<SpanId>(made_.spans.size());
    const int track = static_cast<int>(made_.tracks.size()) - 1;
    made_.rows.push_back({static_cast<int>(made_.processes.size()) - 1, track, at, at});
    made_.tracks.back().last_row = static_cast<int>(made_.rows.size());
    return *this;
  }
  // Starts the summary of the current process; its spans follow.
  TimelineBuilder& summary() {
    const auto at = static_cast<SpanId>(made_.spans.size());
    made_.processes.back().summary_row = static_cast<int>(made_.rows.size());
    made_.rows.push_back({static_cast<int>(made_.processes.size()) - 1, -1, at, at});
    return *this;
  }
  TimelineBuilder& span(const std::string& name, Time begin, Time end, Kind kind = Kind::compute,
                        Pass pass = Pass::none, std::int32_t microbatch = -1) {
    SpanColumns& spans = made_.spans;
    spans.begin.push_back(begin);
    spans.end.push_back(end);
    spans.name.push_back(number_of(name));
    spans.kind.push_back(kind);
    spans.pass.push_back(pass);
    spans.microbatch.push_back(microbatch);
    spans.step.push_back(0);
    spans.op.push_back(-1);
    spans.algorithm.push_back(0);
    spans.members.push_back(0);
    spans.bytes.push_back(NAN);
    spans.flops.push_back(NAN);
    spans.ready.push_back(-1);
    spans.critical.push_back(false);
    made_.rows.back().last = static_cast<SpanId>(spans.size());
    dependencies_.emplace_back();
    return *this;
  }
  // Sets the op number and dependencies of the last span.
  TimelineBuilder& op(std::int32_t number, std::vector<std::int32_t> after = {}) {
    made_.spans.op.back() = number;
    dependencies_.back() = std::move(after);
    return *this;
  }
  TimelineBuilder& transfer(float bytes, int members = 0, const std::string& algorithm = {}) {
    made_.spans.bytes.back() = bytes;
    made_.spans.members.back() = members;
    made_.spans.algorithm.back() = number_of(algorithm);
    return *this;
  }
  TimelineBuilder& bytes(float count) { return transfer(count); }
  TimelineBuilder& flops(float count) {
    made_.spans.flops.back() = count;
    return *this;
  }
  TimelineBuilder& ready(Time time) {
    made_.spans.ready.back() = time;
    return *this;
  }
  TimelineBuilder& critical() {
    made_.spans.critical.back() = true;
    return *this;
  }
  TimelineBuilder& flow(SpanId from, SpanId to) {
    made_.flows.push_back({from, to});
    return *this;
  }
  TimelineBuilder& counter(const std::string& name, std::vector<Time> time, std::vector<double> value,
                           int process = -1, const std::string& unit = "bytes") {
    made_.counters.push_back({name, unit, process, std::move(time), std::move(value)});
    return *this;
  }
  TimelineBuilder& step(int number) { return made_.spans.step.back() = number, *this; }
  // Adds to each process a summary that copies its spans except annotations; the copied spans must not
  // overlap.
  TimelineBuilder& summarize() {
    const auto processes = static_cast<int>(made_.processes.size());
    for (int p = 0; p < processes; ++p) {
      std::vector<SpanId> own;
      for (const Row& row : made_.rows)
        for (SpanId span = row.first; row.process == p && span < row.last; ++span)
          if (made_.spans.kind[span] != Kind::annotation) own.push_back(span);
      std::stable_sort(own.begin(), own.end(),
                       [&](SpanId a, SpanId b) { return made_.spans.begin[a] < made_.spans.begin[b]; });
      const auto first = static_cast<SpanId>(made_.spans.size());
      made_.processes[static_cast<std::size_t>(p)].summary_row = static_cast<int>(made_.rows.size());
      made_.rows.push_back({p, -1, first, first});
      for (const SpanId one : own)
        span("", made_.spans.begin[one], made_.spans.end[one], made_.spans.kind[one]);
    }
    return *this;
  }
  // The timeline so far, for what has no function here.
  Timeline& timeline() { return made_; }
  // Returns the complete timeline, which can still be added to.
  const Timeline& done() {
    Timeline& t = made_;
    t.first_dependency.clear();
    t.dependencies.clear();
    std::sort(t.flows.begin(), t.flows.end(), [](const Flow& a, const Flow& b) { return a.from < b.from; });
    t.flows_to.resize(t.flows.size());
    for (std::size_t i = 0; i < t.flows.size(); ++i) t.flows_to[i] = static_cast<std::uint32_t>(i);
    std::stable_sort(t.flows_to.begin(), t.flows_to.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return t.flows[a].to < t.flows[b].to; });
    for (const auto& each : dependencies_) {
      t.first_dependency.push_back(static_cast<std::uint32_t>(t.dependencies.size()));
      t.dependencies.insert(t.dependencies.end(), each.begin(), each.end());
    }
    t.first_dependency.push_back(static_cast<std::uint32_t>(t.dependencies.size()));
    for (std::size_t s = 0; s < t.spans.size(); ++s) t.end = std::max(t.end, t.spans.end[s]);
    if (!t.spans.begin.empty()) t.begin = *std::min_element(t.spans.begin.begin(), t.spans.begin.end());
    return t;
  }
  std::shared_ptr<const Timeline> build() {
    done();
    return std::make_shared<const Timeline>(std::move(made_));
  }

private:
  std::uint32_t number_of(const std::string& text) {
    auto& strings = made_.strings;
    const auto number = std::find(strings.begin(), strings.end(), text) - strings.begin();
    if (number == std::ssize(strings)) strings.push_back(text);
    return static_cast<std::uint32_t>(number);
  }
  Timeline made_;
  std::vector<std::vector<std::int32_t>> dependencies_;
};

inline Run run_of(std::shared_ptr<const Timeline> timeline, const std::string& name = "run") {
  Run run;
  run.name = name;
  run.figures.step = {timeline->begin, timeline->end};
  run.figures.step_time_s = static_cast<double>(timeline->end - timeline->begin) / 1e9;
  run.timeline = std::move(timeline);
  return run;
}

// Returns two pipeline stages with two micro-batches: forward takes 100 us, backward 200 us, a send 10 us.
// Stage 0 computes in spans 0 to 3 and sends in 4 and 5; 6 to 8 are its summary. Stage 1 computes in 9 to 12
// and receives in 14 and 16, each after its wait.
inline std::shared_ptr<const Timeline> two_stages() {
  constexpr Time us = 1000;
  using enum Kind;
  TimelineBuilder b;
  b.process("stage 0 (2 ranks)", 2, "0").track("compute");
  b.span("forward 0", 0, 100 * us, compute, Pass::forward, 0).op(0).flops(1e9F).critical();
  b.span("forward 1", 100 * us, 200 * us, compute, Pass::forward, 1).op(2).flops(1e9F).critical();
  b.span("backward 0", 420 * us, 620 * us, compute, Pass::backward, 0).op(5, {4}).flops(2e9F);
  b.span("backward 1", 720 * us, 920 * us, compute, Pass::backward, 1).op(7, {6}).flops(2e9F).critical();
  b.track("send forward");
  b.span("send 0", 100 * us, 110 * us, communication, Pass::none, 0)
      .op(1, {0})
      .transfer(1e6F)
      .ready(100 * us);
  b.span("send 1", 200 * us, 210 * us, communication, Pass::none, 1)
      .op(3, {2})
      .transfer(1e6F)
      .ready(200 * us);
  b.summary()
      .span("computing", 0, 200 * us)
      .span("waiting", 200 * us, 420 * us, waiting)
      .span("computing", 420 * us, 920 * us);
  b.process("stage 1", 1, "1").track("compute");
  b.span("forward 0", 110 * us, 210 * us, compute, Pass::forward, 0).op(1, {0});
  b.span("backward 0", 210 * us, 410 * us, compute, Pass::backward, 0).op(2);
  b.span("forward 1", 410 * us, 510 * us, compute, Pass::forward, 1).op(4, {3});
  b.span("backward 1", 510 * us, 710 * us, compute, Pass::backward, 1).op(5);
  b.track("receive forward");
  b.span("waiting for the pipeline", 0, 100 * us, bubble, Pass::none, 0).op(0);
  b.span("receive 0", 100 * us, 110 * us, communication, Pass::none, 0).op(0).transfer(1e6F).ready(0);
  b.span("waiting for the pipeline", 110 * us, 200 * us, bubble, Pass::none, 1).op(3);
  b.span("receive 1", 200 * us, 210 * us, communication, Pass::none, 1).op(3).transfer(1e6F).ready(110 * us);
  b.flow(4, 14).flow(5, 16);
  b.counter("memory", {0, 100 * us, 920 * us}, {1e9, 3e9, 1e9}, 0);
  b.counter("leaf0-spine0", {0, 100 * us, 110 * us}, {0, 1e11, 0}, -1, "bytes_per_s");
  return b.build();
}

}  // namespace rehearse::gui
