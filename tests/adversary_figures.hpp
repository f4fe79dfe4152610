// What holds for the figures of every run, whatever the scenario.
#pragma once

#include <string>

#include "simulator/commands/predict.hpp"

namespace rehearse::adversary {

std::string json_of(const Prediction& prediction);
std::string text_of(const Prediction& prediction);

// Nothing, or what is wrong: a figure that is no finite number, parts that do not add up to the step, a step
// shorter than its arithmetic or than the bytes of its busiest link need, reports that do not parse or hold
// NaN.
std::string unsound(const Prediction& prediction);

}  // namespace rehearse::adversary
