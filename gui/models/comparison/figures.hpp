// Computes the figures of a run from the data in its trace or with the simulator's tools.
#pragma once

#include <memory>

#include "gui/models/runs/run.hpp"

namespace rehearse::gui {

// Reads the figures from `otherData` of Rehearse's traces. For other traces, derives them from the spans of
// each device's summary row, where each instant counts once.
RunFigures figures_of(const Timeline& timeline);

// Evaluates a Rehearse trace with the simulator's tools: a simulated run at its last step, a measured one at
// the step of median time. Throws RunError if the run failed or has no such step.
std::shared_ptr<const Judged> judge(RecordedRun run);
// Like figures_of(timeline), but replaces the figures that `judged` knows more precisely.
RunFigures figures_of(const Timeline& timeline, const Judged& judged);

}  // namespace rehearse::gui
