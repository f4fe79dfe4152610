// Builds runs of the window from recorded runs and traces.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "gui/models/runs/run.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse::gui {

inline RecordedRun recorded(const std::string& name) {
  return read_run(std::string(REHEARSE_TESTS_DIR) + "/../benchmarks/recorded/emulated/" + name + ".json.gz");
}

// Returns the timeline of a trace as readers build it: a process for each class, a row for each stream, and
// the wait before each transfer.
inline Timeline timeline_of(const Trace& trace, Time origin) {
  Timeline timeline;
  timeline.origin = origin;
  const Spans& spans = trace.spans;
  const auto add = [&](double begin_s, double end_s, Kind kind, std::size_t row) {
    timeline.spans.begin.push_back(std::llround(begin_s * 1e9) - origin);
    timeline.spans.end.push_back(std::llround(end_s * 1e9) - origin);
    timeline.spans.kind.push_back(kind);
    timeline.spans.op.push_back(spans.op[row]);
    timeline.spans.step.push_back(spans.step[row]);
    timeline.rows.back().last = static_cast<SpanId>(timeline.spans.size());
  };
  for (std::size_t c = 0; c < trace.classes.size(); ++c) {
    const auto [first, last] = rows_of_class(trace, static_cast<int>(c));
    timeline.processes.push_back({"class", static_cast<std::int64_t>(c) + 1});
    timeline.tracks.push_back({"stream", static_cast<int>(c)});
    int stream = -1;
    for (std::size_t row = first; row < last; ++row) {
      if (trace.op_of(row).stream != stream) {
        stream = trace.op_of(row).stream;
        const auto here = static_cast<SpanId>(timeline.spans.size());
        timeline.rows.push_back({static_cast<int>(c), 0, here, here});
      }
      if (is_transfer(trace.op_of(row)) && spans.ready_s[row] < spans.begin_s[row])
        add(spans.ready_s[row], spans.begin_s[row], Kind::waiting, row);
      add(spans.begin_s[row], spans.end_s[row],
          is_transfer(trace.op_of(row)) ? Kind::communication : Kind::compute, row);
    }
  }
  for (const Time end : timeline.spans.end) timeline.end = std::max(timeline.end, end);
  return timeline;
}

// Returns a run judged by the entire trace, as if it were the step that is shown.
inline Run judged_run(RecordedRun recorded, const std::string& name) {
  Run run;
  run.name = name;
  run.source = recorded.measured ? Run::Source::measured : Run::Source::predicted;
  run.timeline = std::make_shared<const Timeline>(timeline_of(recorded.trace, 0));
  Trace step = recorded.trace;
  run.judged = std::make_shared<const Judged>(Judged{std::move(recorded), {}, {}, std::move(step)});
  return run;
}

}  // namespace rehearse::gui
