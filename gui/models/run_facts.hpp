// What a trace of ours tells of itself.
#pragma once

#include "gui/models/run.hpp"

namespace rehearse::gui {

// Whether it was measured, and the scenario it can be predicted from again; from `otherData`.
void facts_of(const Timeline& timeline, Run& run);

// On which node each process of the timeline sits: "node3"; of ranks that are folded to one "node0, node8" or
// "16 nodes".
std::vector<std::string> nodes_of(const Timeline& timeline, const Judged& judged);

// Of each counter of the timeline: a link's bandwidth, a device's memory; 0: neither.
std::vector<double> capacities_of(const Timeline& timeline, const Judged& judged);

}  // namespace rehearse::gui
