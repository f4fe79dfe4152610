// A run in the window: its timeline, where it came from, and the figures that are told of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/time_scale.hpp"
#include "simulator/report/recorded_run.hpp"
#include "simulator/report/report.hpp"

namespace rehearse::gui {

// What a step is made of, a mean over devices, in the order of the legend; together they are the step.
struct BreakdownPart {
  std::string name;  // "compute", "exposed gradient sync", "pipeline bubble", "data stall", "other"
  Kind kind = Kind::compute;
  double seconds = 0;
};

// What a step and the training that the scenario asks for cost, where prices and power are known; else 0.
struct CostFigures {
  std::string currency;  // "USD"
  double step_money = 0, step_energy_wh = 0;
  double samples = 0, tokens = 0;  // that are to be trained on; 0: the scenario does not say
  double seconds = 0, device_hours = 0, money = 0, energy_kwh = 0;  // until then
  std::string price;  // "2.79 USD per GPU and hour (published: AWS p4d.24xlarge, 2025-06)"
};

// Of the step that is told of: simulated, the last; measured, the one of median time; of a profiler's trace a
// mean over its ProfilerStep annotations or, without any, the whole trace. What is not known is 0 or empty.
struct RunFigures {
  TimeRange step;  // in the timeline's time
  int steps = 1;   // that `step` holds: of a profiler's trace several
  double step_time_s = 0;
  int devices = 0;
  double samples_per_s = 0, tokens_per_s = 0, tflops_per_device = 0, mfu = 0;
  std::vector<BreakdownPart> breakdown;
  MemoryUse memory;
  std::string bottleneck;                                    // a sentence
  std::vector<Advice> advice;                                // that has assignments to try
  std::string critical_path;                                 // a sentence
  std::vector<std::pair<std::string, double>> path_by_kind;  // seconds of the critical path
  std::string rests_on;                                      // "compute published (a100-80, 8 figures), ..."
  CostFigures cost;
};

// What the simulator's own tools make of a trace of ours.
struct Judged {
  RecordedRun run;
  Metrics metrics;
  std::vector<PathSegment> path;  // rows of `step`
  Trace step;                     // the trace up to the step that is told of
  Result result() const {
    return {run.scenario, run.plan, step, metrics, path, {}, run.measured ? &*run.measured : nullptr};
  }
};

struct Run {
  enum class Source { predicted, measured, profiler } source = Source::predicted;
  int id = 0;                 // given by the session, never used twice
  std::string name;           // "gpt3-175b"
  std::string path;           // of the trace; empty: it was never a file
  std::string scenario_text;  // that can be run again; empty: not known
  Time aligned = 0;  // the timeline's time that is 0 on the axis that runs share: where the step begins
  std::shared_ptr<const Timeline> timeline;
  RunFigures figures;
  // Ours, once it has been read so; null: another program's, too large, of several jobs, or not yet.
  std::shared_ptr<const Judged> judged;
  std::string not_judged;          // why it is not
  std::vector<std::string> nodes;  // on which each process of the timeline sits; empty: not known
  // What each counter of the timeline can be at most: bytes/s of a link, bytes of a device; 0: not known.
  std::vector<double> capacities;  // empty: none is
  double capacity_of(std::size_t counter) const {
    return counter < capacities.size() ? capacities[counter] : 0;
  }
};

}  // namespace rehearse::gui
