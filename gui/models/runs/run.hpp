// Holds a run of the window: its timeline, its origin, and its figures.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/timeline/time_scale.hpp"
#include "simulator/report/recorded_run.hpp"
#include "simulator/report/report.hpp"

namespace rehearse::gui {

// A part of the step time, averaged over the devices. The parts are in the order of the legend and add up to
// the step.
struct BreakdownPart {
  std::string name;  // e.g. "compute", "exposed gradient sync", "pipeline bubble", "waiting for data"
  Kind kind = Kind::compute;
  double seconds = 0;
};

// Costs of a step and of the training run that the scenario asks for, if prices and power are known; else 0.
struct CostFigures {
  std::string currency;  // "USD"
  double step_money = 0, step_energy_wh = 0;
  double samples = 0, tokens = 0;  // to train on; 0: not given by the scenario
  double seconds = 0, device_hours = 0, money = 0, energy_kwh = 0;  // until the training is done
  std::string price;  // "2.79 USD per GPU and hour (published: AWS p4d.24xlarge, 2025-06)"
};

// The figures of one step: of a simulated run the last one, of a measured run the one of median time; for a
// profiler's trace the mean of its ProfilerStep annotations, or the entire trace if it has none. Unknown
// figures are 0 or empty.
struct RunFigures {
  TimeRange step;  // in the timeline's time
  int steps = 1;   // number of steps in `step`; a profiler's trace can have several
  double step_time_s = 0;
  int devices = 0;
  double samples_per_s = 0, tokens_per_s = 0, tflops_per_device = 0, mfu = 0;
  std::vector<BreakdownPart> breakdown;
  MemoryUse memory;
  std::string bottleneck;                                    // a sentence
  std::vector<Advice> advice;                                // advice with settings to try
  std::string critical_path;                                 // a sentence
  std::vector<std::pair<std::string, double>> path_by_kind;  // seconds of the critical path
  std::string rests_on;                                      // "compute published (a100-80, 8 figures), ..."
  CostFigures cost;
};

// The evaluation of a Rehearse trace by the simulator's tools.
struct Judged {
  RecordedRun run;
  Metrics metrics;
  std::vector<PathSegment> path;  // refers to rows of `step`
  Trace step;                     // the trace up to the evaluated step
  Result result() const {
    return {run.scenario, run.plan, step, metrics, path, {}, run.measured ? &*run.measured : nullptr};
  }
};

struct Run {
  enum class Source { predicted, measured, profiler } source = Source::predicted;
  int id = 0;                 // assigned by the session, never reused
  std::string name;           // "gpt3-175b"
  std::string path;           // of the trace; empty: never saved to a file
  std::string scenario_text;  // scenario to rerun; empty: not known
  Time aligned = 0;  // time of the timeline that is 0 on the axis shared by the runs: the begin of the step
  std::shared_ptr<const Timeline> timeline;
  RunFigures figures;
  std::vector<std::string> notes;  // that the trace states: of assumptions, and of frameworks that would fit
  TriedRemedies remedies;          // changes that were simulated when the trace was made, the best first
  // Null if another program wrote the trace, if it is too large or holds several jobs, or if it is not
  // evaluated yet.
  std::shared_ptr<const Judged> judged;
  std::string not_judged;          // why `judged` is null
  std::vector<std::string> nodes;  // node of each process of the timeline; empty: not known
  // The maximum of each counter of the timeline: bytes/s of a link, bytes of a device; 0: not known.
  std::vector<double> capacities;  // empty: none is known
  double capacity_of(std::size_t counter) const {
    return counter < capacities.size() ? capacities[counter] : 0;
  }
};

}  // namespace rehearse::gui
