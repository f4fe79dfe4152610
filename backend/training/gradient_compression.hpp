// Compresses gradients before they are sent, and carries the compression error over to the next gradients, on
// processors.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/runtime/workload.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// A layer's weights in a bucket: a row-major matrix [inputs, outputs], then `outputs` biases.
struct DenseLayer {
  long inputs = 0, outputs = 0;
};

// The synchronization of one bucket on one of `ranks` ranks, in the steps that
// simulator/strategies/gradients/compression.cpp writes: computations, and collectives with the buffer sizes
// given there. The gradients are shares of the mean over all ranks; the result is their sum, with the same
// bits on all ranks. What a rank does not send exactly, it stores and adds to the next gradients (error
// feedback).
class GradientCompressor {
public:
  virtual ~GradientCompressor() = default;
  // Runs step `part`, a computation. The first one reads the gradients, the last one writes them.
  virtual void compute(int part, std::span<float> gradients) = 0;
  // Returns the buffer of step `part`, a collective.
  virtual Payload collective(int part) = 0;
};

// Creates the compressor of member number `rank` of `ranks`. `layers` are the bucket's layers in the order of
// their memory. PowerSGD draws its first factors from `seed` and `bucket`. The algorithms are:
//   fp16      casts, sums in fp16, casts back (PyTorch's fp16_compress_hook)
//   top-k     sends the ceil(density E) largest of the stored error plus the gradients; of equal ones, the
//             first (Aji and Heafield, "Sparse Communication for Distributed Gradient Descent", 2017; Lin et
//             al., "Deep Gradient Compression", 2018, without its momentum correction)
//   one-bit   sends signs and the root of the mean square: all ranks send a share to its owner, which sends
//             the share's sum to all (Seide et al., "1-Bit Stochastic Gradient Descent", 2014; Tang et al.,
//             "1-bit Adam", 2021: its compressed all-reduce with errors stored on both sides, without its
//             warm-up)
//   powersgd  computes a step of a power iteration for each matrix, which continues from the last step's
//             factor (Vogels et al., "PowerSGD", 2019, algorithms 1 and 2)
std::unique_ptr<GradientCompressor> gradient_compressor(const CompressionChoice& choice,
                                                        const std::vector<DenseLayer>& layers, int rank,
                                                        int ranks, std::uint64_t seed, int bucket);
std::unique_ptr<GradientCompressor> power_sgd_compressor(const std::vector<DenseLayer>& layers, double rank,
                                                         int ranks, std::uint64_t seed, int bucket);

}  // namespace rehearse
