// A prediction as an interval, by propagating the uncertainty of the constants that it rests on.
#pragma once

#include "simulator/commands/predict.hpp"

namespace rehearse {

// Predicts the scenario again with each uncertain constant one standard deviation better and worse. Constants
// are taken to be independent and their effects on ln(step time) to add up, so that the squares of the
// effects do (the first order of error propagation, on each side for itself); the interval is 1.645 standard
// deviations on each side, which holds 90 % of a normal distribution. `jobs` predictions run at once, each in
// a process of its own. `prediction` must have been made in a child.
// `ended(some, all)` is told how far they are, if it is given.
Uncertainty uncertainty(const Prediction& prediction, int jobs,
                        const std::function<void(std::size_t, std::size_t)>& ended = {});

}  // namespace rehearse
