// A prediction as an interval, by propagating the uncertainty of the constants that it rests on.
#pragma once

#include "simulator/commands/predict.hpp"

namespace rehearse {

// Predicts the scenario again with each uncertain constant one standard deviation better and worse, and adds
// up what that changes (propagation.hpp). `jobs` predictions run at once, each in a process of its own.
// `prediction` must have been made in a child. `ended(some, all)` is told how far they are, if it is given.
Uncertainty uncertainty(const Prediction& prediction, int jobs,
                        const std::function<void(std::size_t, std::size_t)>& ended = {});

}  // namespace rehearse
