// Runs of the window from trace files of ours, by the simulator's own reader.
#pragma once

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "gui/models/figures.hpp"
#include "simulator/report/json_reader.hpp"
#include "simulator/report/rank_names.hpp"

namespace rehearse::gui::test {

inline std::string recorded(const std::string& name) {
  return std::string(REHEARSE_TESTS_DIR) + "/../benchmarks/recorded/emulated/" + name + ".json.gz";
}

inline Kind kind_of(const rehearse::Op& op) {
  switch (op.kind) {
    case OpKind::compute:
      return Kind::compute;
    case OpKind::exchange:
    case OpKind::collective:
      return Kind::communication;
    default:
      return op.host_action == HostAction::load_batch ? Kind::data : Kind::other;
  }
}

// Rows by class and stream, as the trace has them.
inline Timeline timeline_of(const Trace& trace, const std::string& other_data) {
  Timeline timeline;
  timeline.writer = Timeline::Writer::rehearse;
  timeline.other_data = other_data;
  std::map<std::string, std::uint32_t> strings = {{"", 0}};
  const auto ns = [](double s) { return static_cast<Time>(std::llround(s * 1e9)); };
  for (std::size_t c = 0, row = 0; c < trace.classes.size(); ++c) {
    Process process;
    process.name = class_name(trace, static_cast<int>(c));
    process.members = static_cast<int>(trace.classes[c].ranks.size());
    process.first_track = static_cast<int>(timeline.tracks.size());
    int stream = -1;
    for (; row < trace.spans.size() && trace.spans.rank_class[row] == static_cast<int>(c); ++row) {
      const rehearse::Op& op = trace.op_of(row);
      SpanColumns& s = timeline.spans;
      if (op.stream != stream) {
        stream = op.stream;
        const int at = static_cast<int>(timeline.rows.size());
        timeline.tracks.push_back({"stream", static_cast<int>(c), stream, at, at + 1});
        timeline.rows.push_back({static_cast<int>(c), static_cast<int>(timeline.tracks.size()) - 1,
                                 static_cast<SpanId>(s.size()), static_cast<SpanId>(s.size())});
      }
      const auto [it, is_new] =
          strings.try_emplace(op.name, static_cast<std::uint32_t>(timeline.strings.size()));
      if (is_new) timeline.strings.push_back(op.name);
      s.begin.push_back(ns(trace.spans.begin_s[row]));
      s.end.push_back(ns(trace.spans.end_s[row]));
      s.name.push_back(it->second);
      s.kind.push_back(kind_of(op));
      s.pass.push_back(rehearse::gui::Pass::none);
      s.microbatch.push_back(op.microbatch);
      s.step.push_back(trace.spans.step[row]);
      s.op.push_back(trace.spans.op[row]);
      s.algorithm.push_back(0);
      s.members.push_back(0);
      s.bytes.push_back(op.kind == OpKind::collective ? 1e6F : std::numeric_limits<float>::quiet_NaN());
      s.flops.push_back(op.kind == OpKind::compute ? 1e9F : std::numeric_limits<float>::quiet_NaN());
      s.ready.push_back(-1);
      s.critical.push_back(false);
      timeline.rows.back().last = static_cast<SpanId>(s.size());
      timeline.end = std::max(timeline.end, s.end.back());
    }
    process.last_track = static_cast<int>(timeline.tracks.size());
    timeline.processes.push_back(process);
  }
  return timeline;
}

inline Run run_of(const std::string& path, const std::string& name, bool judged = true) {
  RecordedRun recorded = read_run(path);
  const nlohmann::json file = nlohmann::json::parse(read_packed_file(path, "trace"));
  Run run;
  run.name = name;
  run.path = path;
  run.source = recorded.measured ? Run::Source::measured : Run::Source::predicted;
  run.scenario_text = recorded.scenario.text;
  run.timeline = std::make_shared<Timeline>(timeline_of(recorded.trace, file["otherData"].dump()));
  if (judged) run.judged = judge(std::move(recorded));
  run.figures = judged ? figures_of(*run.timeline, *run.judged) : figures_of(*run.timeline);
  run.aligned = run.figures.step.begin;
  return run;
}

}  // namespace rehearse::gui::test
