// Predicts a step time as an interval, by propagating the uncertainty of the constants that it is based on.
#pragma once

#include "simulator/commands/predicting/predict.hpp"

namespace rehearse {

// Predicts the scenario again with each uncertain constant one standard deviation better and worse, and
// combines the effects (propagation.hpp). Runs `jobs` predictions at once, each in a separate process.
// `prediction` must have been made in a child. Calls `ended(some, all)`, if given, with the progress.
Uncertainty uncertainty(const Prediction& prediction, int jobs,
                        const std::function<void(std::size_t, std::size_t)>& ended = {});

}  // namespace rehearse
