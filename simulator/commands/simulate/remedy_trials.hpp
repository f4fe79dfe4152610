// Simulates changed scenarios with few micro-batches where that is enough.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulator/commands/predicting/predict.hpp"

namespace rehearse {

// What a simulation says about a change.
struct Trial {
  bool possible = false;  // the scenario is valid, fits into memory, and is not too expensive to simulate
  double step_time_s = 0, samples_per_s = 0, memory_bytes = 0;
  bool exact = false;  // all micro-batches were simulated, or those of all rounds that differ
};

// With how many micro-batches a change is simulated.
enum class Effort {
  few,     // enough to compare changes
  precise  // as many as for a step of its own
};

// Returns whether the prediction's tensors and what libraries reserve beside them fit into a device.
bool fits_with_reserve(const Prediction& p);

// Returns the number of ops of a trial of the prediction's own scenario with few micro-batches.
double ops_of_trial(const Prediction& base);

// Returns the scenario of a prediction with these "--set" assignments. Throws InputError if it is not valid.
Scenario changed(const Prediction& base, const std::vector<std::string>& sets);

class Trials {
public:
  // `base` and `watch` must outlive the object. `most_ops`: of one simulation; a change that needs more is
  // not possible.
  Trials(const Prediction& base, double most_ops, int jobs,
         const std::function<void(std::size_t, std::size_t)>& watch);

  // Simulates each list of assignments in a child process, `jobs` at once.
  std::vector<Trial> run(const std::vector<std::vector<std::string>>& sets, Effort effort) const;

private:
  Trial simulate(const std::vector<std::string>& sets, Effort effort) const;
  Trial judged(const Prediction& p) const;

  const Prediction& base_;
  bool base_fits_with_reserve_;
  double most_ops_;
  int jobs_;
  const std::function<void(std::size_t, std::size_t)>& watch_;
};

}  // namespace rehearse
