// When the steps of a trace begin and end, as its spans or a profiler's annotations tell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/models/time_scale.hpp"

namespace rehearse::gui {

// Of ours: the last step, from the end of the step before; measured, the one of median time among those
// behind `warmup` (as step_times of simulator/trace/measurement.hpp). Nothing: no span tells its step.
std::optional<TimeRange> told_step(const Timeline& timeline, std::optional<int> warmup);

// A profiler's: what it marked as ProfilerStep#N.
struct AnnotatedSteps {
  int steps = 0;                   // that are counted of each process; 0: none are marked
  std::vector<TimeRange> windows;  // of each process; empty where it marks none
  TimeRange whole;                 // of all of them
  std::string left_out;            // "ProfilerStep#2": of three and more steps the first is warm-up
};
AnnotatedSteps annotated_steps(const Timeline& timeline);

}  // namespace rehearse::gui
