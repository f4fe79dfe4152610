// Declares `rehearse-run verify`, which trains a scenario on its ranks and again on one, and compares the
// losses.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "backend/commands/run_result.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

struct VerifyArguments : ScenarioArguments {
  double tolerance = 0;  // largest relative difference that passes; 0: the precision's
};

// The largest relative difference between two trainings of which each rounds differently.
struct LossDifference {
  std::size_t steps = 0;
  double largest = 0;
  std::size_t first_over = 0;  // index of the first step whose difference exceeds the tolerance, if `over`
  bool over = false;
};

// Compares the losses step by step: differences are relative to those of one rank, or to a hundredth of its
// first where the loss has fallen below that. A loss that is not a number exceeds any tolerance. Throws
// RunError if the numbers of steps differ.
LossDifference compare_losses(const std::vector<double>& losses, const std::vector<double>& alone,
                              double tolerance);

// Returns the scenario with the same model, data and training on one rank.
Scenario on_one_rank(const Scenario& scenario);

// Throws InputError if nothing is trained, or if the strategy learns something else than one rank would
// (asynchronous workers, local SGD, compressed gradients); RunError if losses or replicas differ.
void run_verify(const VerifyArguments& arguments, std::istream& in, std::ostream& out);

}  // namespace rehearse
