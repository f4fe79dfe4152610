// Predicts the times of single collectives as intervals.
#pragma once

#include "simulator/commands/predicting/collective_time.hpp"
#include "simulator/report/uncertainty.hpp"

namespace rehearse {

// Simulates predicted collectives again with each uncertain constant of the links one standard deviation
// better and worse, and combines the effects (propagation.hpp). Algorithms stay as they were predicted: NCCL
// chooses them by its own constants, whatever the links reach.
std::vector<Uncertainty> collective_uncertainties(Exchange kind,
                                                  const std::shared_ptr<const Cluster>& cluster, int ranks,
                                                  const std::vector<CollectiveTime>& predicted,
                                                  Protocol::Software software = Protocol::nccl_tests);

}  // namespace rehearse
