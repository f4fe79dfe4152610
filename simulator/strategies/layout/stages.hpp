// Assigns layers to pipeline stages, or to parts of the model if stages hold several parts.
#pragma once

#include <vector>

#include "models/model.hpp"
#include "topologies/device.hpp"

namespace rehearse {

struct LayerRange {
  int first = 0, last = -1;  // inclusive
  bool operator==(const LayerRange&) const = default;
};

// Returns the seconds of one layer's passes for one micro-batch, including recomputation.
double layer_time_s(const LayerCost& layer, const Device& device, Precision precision);

// Divides the layers into `stages` contiguous, non-empty stages so that the slowest stage is as fast as
// possible, and among such cuts chooses the one with the least sum of squares, so that the other stages are
// even, too. Returns the number of layers of each stage.
std::vector<int> balance_stages(const std::vector<double>& layer_times_s, int stages);
// The same for stages with different devices: `layer_times_s` has the times of all layers on each stage's.
std::vector<int> balance_stages(const std::vector<std::vector<double>>& layer_times_s);

std::vector<LayerRange> layer_ranges(const std::vector<int>& stage_layers);

}  // namespace rehearse
