// The terms of a prediction: what the step time would be without each of them.
#pragma once

#include <string>
#include <vector>

#include "simulator/commands/predict.hpp"

namespace rehearse {

struct Term {
  std::string name;      // "element-wise kernels", "bytes of tensor communication"
  double without_s = 0;  // the step time without it
};

// Simulates the plan again without each term that it has, all processors at once: kinds of kernels, the costs
// that a kernel pays beside its arithmetic and bytes, what the framework's process takes, the bytes of each
// kind of communication, and startup and latency of transfers. The terms overlap each other, so that their
// effects do not add up to the step. The largest effect first. None if workers do not wait for each other.
// `prediction` must have been made in a child.
std::vector<Term> terms_of(const Prediction& prediction);

}  // namespace rehearse
