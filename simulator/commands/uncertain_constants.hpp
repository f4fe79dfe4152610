// The constants that a prediction rests on and that are uncertain, and scenarios in which one of them
// differs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulator/commands/predict.hpp"

namespace rehearse {

struct UncertainConstant {
  std::string name;  // "a100-80 gemm_efficiency"
  Basis basis = Basis::guess;
  double deviation = 0;  // standard deviation of ln(constant)
  // Changes a scenario as if the constant were this many times better for the step time (below 1: worse).
  std::function<void(Scenario&, double better)> change;
};

// What tells which constants enter a prediction.
struct UncertainInputs {
  const Scenario& scenario;
  const std::vector<Work>& works;                  // of its schedule
  bool inside_nodes = true, between_nodes = true;  // which links carry anything
  bool slowed = true;                              // collectives slow computing down
};
std::vector<UncertainConstant> uncertain_constants(const UncertainInputs& inputs);

// Of the device, the framework, the profile and the links; those that do not enter `prediction` are left out.
// Peaks and sizes of a data sheet are certain: what is reached of them is not.
std::vector<UncertainConstant> uncertain_constants(const Prediction& prediction);

}  // namespace rehearse
