// The figures of a run: what the trace carries, or what the simulator's tools make of it.
#pragma once

#include <memory>

#include "gui/models/run.hpp"

namespace rehearse::gui {

// From `otherData` of our traces; of others from their spans: what each device did, each instant once, as the
// summary rows have it.
RunFigures figures_of(const Timeline& timeline);

// What the simulator's tools make of a trace of ours: evaluated at its last step, or if it was measured at
// the one of median time. RunError if it failed or has no such step.
std::shared_ptr<const Judged> judge(RecordedRun run);
// The figures of figures_of(timeline), those that `judged` knows better replaced.
RunFigures figures_of(const Timeline& timeline, const Judged& judged);

}  // namespace rehearse::gui
