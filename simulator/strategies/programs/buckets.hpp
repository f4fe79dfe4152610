// Gradients in buckets, as PyTorch's DistributedDataParallel sends them.
#pragma once

#include <vector>

namespace rehearse {

// Neighbouring layers whose gradients are sent together once the backward pass has left the first of them.
struct Bucket {
  int first_layer = 0, last_layer = -1;  // inclusive
  double parameters = 0;
  double expert_parameters = 0;  // of these, those whose gradients are summed by StepPlan::expert_axes
};

// Buckets in the order of the backward pass. PyTorch's rule (torch/csrc/distributed/c10d/reducer.cpp,
// compute_bucket_assignment_by_size; Li et al., "PyTorch Distributed", VLDB 2020): gradients are added in
// reverse order of the layers, and a bucket is closed once it has reached its limit: `first_cap_bytes` or
// `cap_bytes`, whichever is less, for the first one, and `cap_bytes` for the others. What is added here are
// whole layers, not their single tensors. Layers behind the last gradient make a bucket without parameters:
// they are computed, nothing is sent.
std::vector<Bucket> gradient_buckets(const std::vector<double>& layer_parameters, int first_layer,
                                     double bytes_per_parameter, double first_cap_bytes, double cap_bytes);

}  // namespace rehearse
