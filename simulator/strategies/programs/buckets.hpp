// Groups gradients into buckets, as PyTorch's DistributedDataParallel does.
#pragma once

#include <vector>

namespace rehearse {

// Neighbouring layers whose gradients are sent together once the backward pass has left the first of them.
struct Bucket {
  int first_layer = 0, last_layer = -1;  // inclusive
  double parameters = 0;
  double expert_parameters = 0;  // the part of `parameters` whose gradients are summed over
                                 // StepPlan::expert_axes
  // Segments of the walk, if the bucket begins or ends inside a layer; [0, -1) if it holds complete layers.
  int first_segment = 0, end_segment = -1;
  bool whole_layers() const { return end_segment < 0; }
};

// Returns the buckets in the order of the backward pass. PyTorch's rule
// (torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size and rebuild_buckets; Li et al.,
// "PyTorch Distributed", VLDB 2020): gradients are added in the order in which they arrive, which is the
// reverse order of the layers, and a bucket is closed once it has reached its limit: the lesser of
// `first_cap_bytes` and `cap_bytes` for the first one, and `cap_bytes` for the others. (The first step of a
// run has one bucket for all gradients, or buckets in reverse order of registration: PyTorch rebuilds them
// after that step.) The unit that is added here is a complete layer, or whatever else the elements of
// `layer_parameters` are. Layers after the last gradient form a bucket without parameters: they are computed,
// but nothing is sent.
std::vector<Bucket> gradient_buckets(const std::vector<double>& layer_parameters, int first_layer,
                                     double bytes_per_parameter, double first_cap_bytes, double cap_bytes);

}  // namespace rehearse
