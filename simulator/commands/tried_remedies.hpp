// Simulates changes of a scenario and keeps those that make its step shorter.
#pragma once

#include <cstddef>
#include <functional>

#include "simulator/commands/predict.hpp"

namespace rehearse {

// Sets prediction.remedies: the best changes of the scenario (simulator/remedies/remedy.hpp, and the advice
// of the report), each simulated in a child process, the best first, and a combination of them if that gains
// more. All of them fit into memory. Changes are first compared with few micro-batches each; those told were
// simulated in full. Leaves nullopt for a prediction that does not fit, that has no text to change, or that
// has too many events to be repeated (a count, rather than a clock, decides this).
void try_remedies(Prediction& prediction, int jobs,
                  const std::function<void(std::size_t ended, std::size_t all)>& watch = {});

}  // namespace rehearse
