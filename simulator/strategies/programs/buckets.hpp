// Gradients in buckets, as PyTorch's DistributedDataParallel sends them.
#pragma once

#include <vector>

namespace rehearse {

// Neighbouring layers whose gradients are sent together once the backward pass has left the first of them.
struct Bucket {
  int first_layer = 0, last_layer = -1;  // inclusive
  double parameters = 0;
  double expert_parameters = 0;  // of these, those whose gradients are summed by StepPlan::expert_axes
  // Segments of the walk, where buckets are cut between these; [0, -1): all of the layers.
  int first_segment = 0, end_segment = -1;
  bool whole_layers() const { return end_segment < 0; }
};

// Buckets in the order of the backward pass. PyTorch's rule (torch/csrc/distributed/c10d/reducer.cpp,
// compute_bucket_assignment_by_size and rebuild_buckets; Li et al., "PyTorch Distributed", VLDB 2020):
// gradients are added in the order in which they arrive, which is the reverse order of the layers, and a
// bucket is closed once it has reached its limit: `first_cap_bytes` or `cap_bytes`, whichever is less, for
// the first one, and `cap_bytes` for the others. (The first step of a run has one bucket for all gradients,
// or buckets in reverse order of registration: PyTorch forms them anew behind it.) What is added here are
// whole layers, or whatever else the elements of `layer_parameters` are. Layers behind the last gradient make
// a bucket without parameters: they are computed, nothing is sent.
std::vector<Bucket> gradient_buckets(const std::vector<double>& layer_parameters, int first_layer,
                                     double bytes_per_parameter, double first_cap_bytes, double cap_bytes);

}  // namespace rehearse
