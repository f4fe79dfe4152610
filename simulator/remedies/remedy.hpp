// Proposes changes of a scenario that could make its step shorter. Whether one does is found by simulating it
// (simulator/commands/simulate/tried_remedies.hpp).
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/trace/metrics.hpp"

namespace rehearse {

struct Remedy {
  std::string why;                // a clause: "half the tensor degree sends less"
  std::vector<std::string> sets;  // "--set" assignments: "strategy.tensor=4"; "key=" removes a key
  double at_most_s = 0;  // an upper estimate of what it could save in a step, to try likely ones first
  std::set<int> kinds;   // the rules that proposed it; empty: none of remedies()
};

// Returns all remedies whose `at_most_s` is worth trying, the largest first. They keep the cluster, the
// global batch and the optimizer, and need nothing that the scenario's framework lacks
// (StrategyChoice::lacks).
std::vector<Remedy> remedies(const Scenario& scenario, const Metrics& metrics);

// Returns the key of an assignment: "strategy.tensor".
std::string_view key_of(std::string_view assignment);

// Returns whether any of the assignments sets a key, or a key to a value, that the framework lacks.
bool needs_what_is_lacking(const std::vector<std::string>& sets, const std::vector<std::string>& lacks);

}  // namespace rehearse
