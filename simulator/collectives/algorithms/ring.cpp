// Ring: one lane for each channel.
#include "simulator/collectives/algorithms/algorithm.hpp"

namespace rehearse {

extern const AlgorithmEntry kRingAlgorithm{
    .lanes = ring_lanes,
    .cost = ring_stage_cost,
    .in_nccl = always,
};

}  // namespace rehearse
