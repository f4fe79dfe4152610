// Builds timelines by hand, span by span, as a trace reader would produce them.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gui/models/timeline/timeline.hpp"

namespace rehearse::gui::test {

// Adds processes, then their tracks, then the spans of each track ordered by time.
class SimpleTimelineBuilder {
public:
  Timeline timeline;

  SimpleTimelineBuilder& process(const std::string& name, int members = 1) {
    Process process;
    process.name = name;
    process.pid = process.sort_index = static_cast<std::int64_t>(timeline.processes.size());
    process.members = members;
    process.first_track = process.last_track = static_cast<int>(timeline.tracks.size());
    timeline.processes.push_back(std::move(process));
    return *this;
  }

  SimpleTimelineBuilder& track(const std::string& name) {
    const int process = static_cast<int>(timeline.processes.size()) - 1;
    const int row = static_cast<int>(timeline.rows.size());
    const int track = static_cast<int>(timeline.tracks.size());
    const auto spans = static_cast<SpanId>(timeline.spans.size());
    timeline.tracks.push_back({name, process, track, row, row + 1});
    timeline.rows.push_back({process, track, spans, spans});
    timeline.processes.back().last_track = track + 1;
    return *this;
  }

  SimpleTimelineBuilder& span(Kind kind, Time begin, Time end, const std::string& name) {
    SpanColumns& s = timeline.spans;
    const auto [it, is_new] = strings_.try_emplace(name, static_cast<std::uint32_t>(timeline.strings.size()));
    if (is_new) timeline.strings.push_back(name);
    s.begin.push_back(begin);
    s.end.push_back(end);
    s.name.push_back(it->second);
    s.kind.push_back(kind);
    s.pass.push_back(Pass::none);
    for (auto* column : {&s.microbatch, &s.step, &s.op}) column->push_back(-1);
    s.algorithm.push_back(0);
    s.members.push_back(0);
    for (auto* column : {&s.bytes, &s.flops}) column->push_back(std::numeric_limits<float>::quiet_NaN());
    s.ready.push_back(-1);
    s.critical.push_back(false);
    timeline.rows.back().last = static_cast<SpanId>(s.size());
    timeline.begin = std::min(timeline.begin, begin);
    timeline.end = std::max(timeline.end, end);
    return *this;
  }

  // Sets a property of the last span.
  SimpleTimelineBuilder& step(int number) { return timeline.spans.step.back() = number, *this; }
  SimpleTimelineBuilder& pass(Pass pass) { return timeline.spans.pass.back() = pass, *this; }
  SimpleTimelineBuilder& bytes(float bytes) { return timeline.spans.bytes.back() = bytes, *this; }
  SimpleTimelineBuilder& flops(float flops) { return timeline.spans.flops.back() = flops, *this; }

  // Adds to each process a summary that copies its spans except annotations; the copied spans must not
  // overlap.
  SimpleTimelineBuilder& summarize() {
    const auto processes = static_cast<int>(timeline.processes.size());
    for (int p = 0; p < processes; ++p) {
      std::vector<SpanId> own;
      for (const Row& row : timeline.rows)
        for (SpanId span = row.first; row.process == p && span < row.last; ++span)
          if (timeline.spans.kind[span] != Kind::annotation) own.push_back(span);
      std::stable_sort(own.begin(), own.end(),
                       [&](SpanId a, SpanId b) { return timeline.spans.begin[a] < timeline.spans.begin[b]; });
      const auto first = static_cast<SpanId>(timeline.spans.size());
      timeline.processes[static_cast<std::size_t>(p)].summary_row = static_cast<int>(timeline.rows.size());
      timeline.rows.push_back({p, -1, first, first});
      for (const SpanId one : own)
        span(timeline.spans.kind[one], timeline.spans.begin[one], timeline.spans.end[one], "");
    }
    return *this;
  }

  const Timeline& done() { return timeline; }

private:
  std::map<std::string, std::uint32_t> strings_ = {{"", 0}};
};

}  // namespace rehearse::gui::test
