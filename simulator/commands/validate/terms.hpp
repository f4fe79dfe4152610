// Computes the terms of a prediction: what the step time would be without each of them.
#pragma once

#include <string>
#include <vector>

#include "simulator/commands/predicting/predict.hpp"

namespace rehearse {

struct Term {
  std::string name;      // "element-wise kernels", "bytes of tensor communication"
  double without_s = 0;  // step time without it
};

// Simulates the plan again without each of its terms, on all processors at once: kinds of kernels, the costs
// of a kernel other than its arithmetic and bytes, the time of the framework's process, the bytes of each
// kind of communication, and startup and latency of transfers. The terms overlap, so their effects do not add
// up to the step. Returns the largest effect first; empty if workers do not wait for each other. `prediction`
// must have been made in a child.
std::vector<Term> terms_of(const Prediction& prediction);

}  // namespace rehearse
