// Determines when the steps of a trace begin and end, from its spans or from a profiler's annotations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/models/timeline/time_scale.hpp"

namespace rehearse::gui {

// For Rehearse's traces. Without `warmup`, returns the last step, which begins at the end of the step before;
// for a measured run, the step of median time after `warmup` steps (like step_times() in
// simulator/trace/measurement.hpp). Returns nullopt if no span has a step number.
std::optional<TimeRange> told_step(const Timeline& timeline, std::optional<int> warmup);

// The steps that a profiler marked as ProfilerStep#N.
struct AnnotatedSteps {
  int steps = 0;                   // counted steps per process; 0: none are marked
  std::vector<TimeRange> windows;  // by process; empty if the process marks none
  TimeRange whole;                 // hull of all windows
  std::string left_out;            // "ProfilerStep#2": with three or more steps, the first counts as warm-up
};
AnnotatedSteps annotated_steps(const Timeline& timeline);

}  // namespace rehearse::gui
