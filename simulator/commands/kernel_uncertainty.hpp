// The time of a single kernel as an interval.
#pragma once

#include <string>

#include "simulator/commands/kernel_question.hpp"
#include "simulator/report/uncertainty.hpp"

namespace rehearse {

// Answers the question again with each uncertain constant of the device one standard deviation better and
// worse, and adds up what that changes (propagation.hpp). Throws as answer() does.
Uncertainty kernel_uncertainty(const KernelQuestion& question, const Device& device,
                               const std::string& place);

}  // namespace rehearse
