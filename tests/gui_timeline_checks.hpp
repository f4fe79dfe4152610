// Provides checks that tests of timelines share.
#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "gui/models/timeline/timeline.hpp"
#include "tests/catch.hpp"

namespace rehearse::gui {

// Checks all invariants of a timeline.
inline void check_timeline(const Timeline& timeline) {
  const SpanColumns& spans = timeline.spans;
  const std::size_t count = spans.size();
  bool lengths = spans.end.size() == count && spans.name.size() == count && spans.kind.size() == count &&
                 spans.pass.size() == count && spans.microbatch.size() == count &&
                 spans.step.size() == count && spans.op.size() == count && spans.algorithm.size() == count &&
                 spans.members.size() == count && spans.bytes.size() == count &&
                 spans.flops.size() == count && spans.ready.size() == count && spans.critical.size() == count;
  REQUIRE(lengths);
  REQUIRE((timeline.first_dependency.empty() || timeline.first_dependency.size() == count + 1));
  REQUIRE((timeline.first_detail.empty() || timeline.first_detail.size() == count + 1));
  bool rows = true, times = true, texts = true, tracks = true, flows = true, counters = true;
  SpanId next = 0;
  for (const Row& row : timeline.rows) {
    rows = rows && row.first == next && row.last > row.first;
    next = row.last;
    for (SpanId s = row.first; s < row.last; ++s) {
      times = times && spans.begin[s] >= 0 && spans.end[s] >= spans.begin[s];
      if (s > row.first) times = times && spans.begin[s] >= spans.end[s - 1];
      if (row.track >= 0) times = times && spans.end[s] <= timeline.end;
      texts =
          texts && spans.name[s] < timeline.strings.size() && spans.algorithm[s] < timeline.strings.size();
    }
  }
  CHECK((rows && next == count));
  CHECK(times);
  CHECK(texts);
  int track = 0;
  for (std::size_t p = 0; p < timeline.processes.size(); ++p) {
    const Process& process = timeline.processes[p];
    tracks = tracks && process.first_track == track && process.last_track > track;
    for (; track < process.last_track; ++track) {
      const Track& each = timeline.tracks[track];
      tracks = tracks && each.process == static_cast<int>(p) && each.first_row < each.last_row;
      for (int row = each.first_row; row < each.last_row; ++row)
        tracks = tracks && timeline.rows[row].track == track && timeline.rows[row].process == each.process;
    }
    if (process.summary_row >= 0) {
      const Row& row = timeline.rows[process.summary_row];
      tracks = tracks && row.track == -1 && row.process == static_cast<int>(p);
      for (SpanId s = row.first + 1; s < row.last; ++s) tracks = tracks && spans.begin[s] == spans.end[s - 1];
    }
  }
  CHECK((tracks && track == static_cast<int>(timeline.tracks.size())));
  for (std::size_t i = 0; i < timeline.flows.size(); ++i) {
    flows = flows && timeline.flows[i].from < count && timeline.flows[i].to < count;
    if (i > 0) {
      flows = flows && timeline.flows[i].from >= timeline.flows[i - 1].from;
      flows = flows && timeline.flows[timeline.flows_to[i]].to >= timeline.flows[timeline.flows_to[i - 1]].to;
    }
  }
  CHECK((flows && timeline.flows_to.size() == timeline.flows.size()));
  for (const Counter& counter : timeline.counters)
    counters = counters && counter.time.size() == counter.value.size() && !counter.time.empty() &&
               std::is_sorted(counter.time.begin(), counter.time.end()) &&
               counter.process < static_cast<int>(timeline.processes.size());
  CHECK(counters);
}

// Returns the first span with this name on the process's tracks, or kNoSpan.
inline SpanId span_named(const Timeline& timeline, int process, const std::string& name) {
  for (const Row& row : timeline.rows)
    for (SpanId s = row.first; row.process == process && row.track >= 0 && s < row.last; ++s)
      if (timeline.name_of(s) == name) return s;
  return kNoSpan;
}

inline std::vector<std::tuple<Time, Time, std::string>> summary_told(const Timeline& timeline, int process) {
  std::vector<std::tuple<Time, Time, std::string>> told;
  const Row& row = timeline.rows.at(timeline.processes.at(process).summary_row);
  for (SpanId s = row.first; s < row.last; ++s)
    told.emplace_back(timeline.spans.begin[s], timeline.spans.end[s], timeline.name_of(s));
  return told;
}

}  // namespace rehearse::gui
