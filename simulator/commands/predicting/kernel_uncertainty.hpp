// Predicts the time of a single kernel as an interval.
#pragma once

#include <string>

#include "simulator/commands/predicting/kernel_question.hpp"
#include "simulator/report/uncertainty.hpp"

namespace rehearse {

// Answers the question again with each uncertain constant of the device one standard deviation better and
// worse, and combines the effects (propagation.hpp). Throws the same errors as answer().
Uncertainty kernel_uncertainty(const KernelQuestion& question, const Device& device,
                               const std::string& place);

}  // namespace rehearse
