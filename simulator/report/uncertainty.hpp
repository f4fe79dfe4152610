// Describes a predicted time as an interval, and the constants that make it wide.
#pragma once

#include <string>
#include <vector>

#include "topologies/device.hpp"

namespace rehearse {

// The range of times that the uncertainty of the constants allows.
struct Uncertainty {
  double low_s = 0, high_s = 0;  // nine of ten measurements are expected between them
  // A constant, and the time with it one standard deviation better and worse.
  struct Effect {
    std::string constant;  // "a100-80 gemm_efficiency"
    Basis basis = Basis::guess;
    double deviation = 0;  // of the logarithm of the constant
    double better_s = 0, worse_s = 0;
  };
  std::vector<Effect> effects;  // the largest first; constants without any effect are omitted
};

// Describes the interval around `predicted_s` and the constants with the largest effects, for people.
std::string uncertainty_sentence(const Uncertainty& uncertainty, double predicted_s);

}  // namespace rehearse
