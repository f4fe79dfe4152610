// What to change in a scenario to lose less time or memory: keys that exist, with values that the scenario
// allows.
#pragma once

#include <string>
#include <vector>

#include "simulator/report/report.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"

namespace rehearse {

// "twice the global batch would leave 7 of 199", "training.global_batch=3072"
using WayOut = Advice;

// "; WHY (try --set KEY=VALUE)", or nothing if there is no way out. Of a clause that the sentence has already
// the assignments alone.
std::string told(const WayOut& way);

WayOut less_bubble(const Result& result);
// Of time spent waiting for communication of this purpose.
WayOut less_communication(const Result& result, Purpose purpose);
WayOut less_compute(const Result& result);
WayOut less_waiting(const Result& result);
// What makes the scenario fit into memory, by the schedule that it then has: one change, else several
// together; if even those do not suffice, it says how much is still needed.
WayOut less_memory(const Result& result);
// Whether the result's devices have the memory for the scenario with changes.
bool would_fit(const Result& result, const Scenario& changed);
// As few layers of each stage as must be recomputed to fit into memory; 0: no fewer than all of them.
int fewest_recompute_layers(const Result& result);

}  // namespace rehearse
