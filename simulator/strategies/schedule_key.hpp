// Tells which scenarios have the same schedule: those that differ only in how fast their cluster and its
// network are, or in what costs.
#pragma once

#include <string>
#include <vector>

#include "simulator/strategies/strategy.hpp"

namespace rehearse {

// Returns a text that is the same for scenarios for which write_schedule() returns the same schedule, except
// for the notes that assumptions() returns. Empty: the schedule follows from rates, or the scenario was not
// read from a file. The scenario must be as it was read, but for its number of micro-batches. Throws as
// write_schedule() does.
std::string schedule_key(const Scenario& scenario);

// Returns the notes on the scenario itself, with which those of write_schedule() begin.
std::vector<std::string> assumptions(const Scenario& scenario);

}  // namespace rehearse
