// Advises what to change in a scenario to lose less time or memory: keys that exist, with values that the
// scenario allows.
#pragma once

#include <string>
#include <vector>

#include "simulator/report/report.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"

namespace rehearse {

// "twice the global batch would leave 7 of 199", "training.global_batch=3072"
using WayOut = Advice;

// Returns "; WHY (try --set KEY=VALUE: GAIN)", or an empty text if there is no advice. Without a reason,
// returns only the assignments.
std::string told(const WayOut& way, const std::string& gain = "");

WayOut less_bubble(const Result& result);
// Advice for time spent waiting for communication of this purpose.
WayOut less_communication(const Result& result, Purpose purpose);
WayOut less_compute(const Result& result);
WayOut less_waiting(const Result& result);
// Returns a change that makes the scenario fit into memory, judged by the schedule it then has: a single
// change, or else several together. If even those do not suffice, the text says how much is still needed.
WayOut less_memory(const Result& result);
// Returns whether the result's devices have the memory for the scenario with changes.
bool would_fit(const Result& result, const Scenario& changed);
// Returns the fewest layers of each stage that must be recomputed to fit into memory; 0 if that takes all of
// them.
int fewest_recompute_layers(const Result& result);

}  // namespace rehearse
