// Lists the uncertain constants that a prediction is based on, and changes scenarios so that one of them
// differs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulator/commands/predicting/predict.hpp"

namespace rehearse {

struct UncertainConstant {
  std::string name;  // "a100-80 gemm_efficiency"
  Basis basis = Basis::guess;
  double deviation = 0;  // standard deviation of ln(constant)
  // Changes a scenario as if the constant were better by this factor for the step time (below 1: worse).
  std::function<void(Scenario&, double better)> change;
};

// Inputs that determine which constants affect a prediction.
struct UncertainInputs {
  const Scenario& scenario;
  const std::vector<Work>& works;                  // of the scenario's schedule
  bool inside_nodes = true, between_nodes = true;  // which links carry data
  bool slowed = true;                              // collectives slow computation down
};
std::vector<UncertainConstant> uncertain_constants(const UncertainInputs& inputs);

// Returns the constants of the device, the framework, the profile and the links that affect `prediction`.
// Peaks and sizes from a data sheet are certain; the shares of them that are reached are not.
std::vector<UncertainConstant> uncertain_constants(const Prediction& prediction);

}  // namespace rehearse
