// Loads runs of the window from trace files of rehearse, with timelines and with the simulator's own figures.
#pragma once

#include <string>

#include "gui/models/comparison/figures.hpp"
#include "gui/models/trace/trace_file.hpp"

namespace rehearse::gui::test {

inline std::string recorded(const std::string& name) {
  return std::string(REHEARSE_TESTS_DIR) + "/../benchmarks/recorded/emulated/" + name + ".json.gz";
}

inline Timeline timeline_of(const std::string& path) {
  Progress progress;
  return read_timeline(path, progress);
}

inline Run run_of(const std::string& path, const std::string& name, bool judged = true) {
  RecordedRun its = read_run(path);
  Run run;
  run.name = name;
  run.path = path;
  run.source = its.measured ? Run::Source::measured : Run::Source::predicted;
  run.scenario_text = its.scenario.text;
  run.timeline = std::make_shared<Timeline>(timeline_of(path));
  if (judged) run.judged = judge(std::move(its));
  run.figures = judged ? figures_of(*run.timeline, *run.judged) : figures_of(*run.timeline);
  run.aligned = run.figures.step.begin;
  return run;
}

}  // namespace rehearse::gui::test
