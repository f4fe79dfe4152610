// Which layers stand in which pipeline stage, or in which part of the model if stages hold several.
#pragma once

#include <vector>

#include "models/model.hpp"
#include "topologies/device.hpp"

namespace rehearse {

struct LayerRange {
  int first = 0, last = -1;  // inclusive
  bool operator==(const LayerRange&) const = default;
};

// Seconds of one layer's passes for one micro-batch, recomputation included.
double layer_time_s(const LayerCost& layer, const Device& device, Precision precision);

// Layers of each of `stages` contiguous, non-empty stages such that the slowest stage is as fast as possible;
// among such cuts the one with the least sum of squares, so that the other stages are even too.
std::vector<int> balance_stages(const std::vector<double>& layer_times_s, int stages);

std::vector<LayerRange> layer_ranges(const std::vector<int>& stage_layers);

}  // namespace rehearse
