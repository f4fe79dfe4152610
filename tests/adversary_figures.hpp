// Checks the properties that the figures of every run have, whatever the scenario.
#pragma once

#include <string>

#include "simulator/commands/predicting/predict.hpp"

namespace rehearse::adversary {

std::string json_of(const Prediction& prediction);
std::string text_of(const Prediction& prediction);

// Returns "", or what is wrong: a figure that is not a finite number, parts that do not add up to the step, a
// step shorter than its arithmetic or the bytes of its busiest link allow, reports that do not parse or that
// contain NaN.
std::string unsound(const Prediction& prediction);

}  // namespace rehearse::adversary
