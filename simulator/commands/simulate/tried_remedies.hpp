// Simulates changes of a scenario and keeps those that make its step shorter.
#pragma once

#include <cstddef>
#include <functional>

#include "simulator/commands/predicting/predict.hpp"

namespace rehearse {

// Sets prediction.remedies to the changes that shorten the step most, the best first. Candidates are
// remedies() of the scenario, pairs of them, and the report's advice. Each is simulated in a child process:
// first with few micro-batches, then, if it is among the best, with all of them or enough to extrapolate. All
// that are kept fit into memory. Leaves nullopt for a prediction that does not fit, that has no text to
// change, or that has too many events to be repeated (a count, rather than a clock, decides this).
void try_remedies(Prediction& prediction, int jobs,
                  const std::function<void(std::size_t ended, std::size_t all)>& watch = {});

}  // namespace rehearse
