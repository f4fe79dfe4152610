// Reads facts about a run from a Rehearse trace.
#pragma once

#include "gui/models/runs/run.hpp"

namespace rehearse::gui {

// Reads from `otherData` whether the run was measured, and the scenario for predicting it again.
void facts_of(const Timeline& timeline, Run& run);

// Returns the node of each process of the timeline: "node3", or for ranks folded into one process "node0,
// node8" or "16 nodes".
std::vector<std::string> nodes_of(const Timeline& timeline, const Judged& judged);

// Returns for each counter of the timeline a link's bandwidth or a device's memory size; 0 for other
// counters.
std::vector<double> capacities_of(const Timeline& timeline, const Judged& judged);

}  // namespace rehearse::gui
