// Gradients compressed before they are sent, and what is left of them afterwards: on processors.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/runtime/workload.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// A layer's weights in a bucket: a matrix [inputs, outputs], row by row, then `outputs` biases.
struct DenseLayer {
  long inputs = 0, outputs = 0;
};

// The sync of one bucket on one of `ranks` ranks, in the parts that
// simulator/strategies/gradients/compression.cpp writes: those that compute, and collectives, whose buffers
// are of the sizes told there. Gradients are shares of the mean over all ranks, and what comes out is their
// sum, the same bits on all ranks. What a rank does not send in full it keeps and adds to the next gradients
// (error feedback).
class GradientCompressor {
public:
  virtual ~GradientCompressor() = default;
  // Part `part`, a computation: the first one reads the gradients, the last one writes them.
  virtual void compute(int part, std::span<float> gradients) = 0;
  // The buffer of part `part`, a collective.
  virtual Payload collective(int part) = 0;
};

// A member that is number `rank` of `ranks`; the bucket's layers in the order in which they stand in memory.
// `seed` and `bucket`: what PowerSGD draws its first factors from.
//   fp16      cast, sum in fp16, cast back (PyTorch's fp16_compress_hook)
//   top-k     the ceil(density E) largest of what was kept and came (Aji and Heafield, "Sparse Communication
//             for Distributed Gradient Descent", 2017; Lin et al., "Deep Gradient Compression", 2018, without
//             its momentum correction); of equal ones the first
//   one-bit   signs and the root of the mean square, from all ranks to whom the share is, and its sum to all
//             (Seide et al., "1-Bit Stochastic Gradient Descent", 2014; Tang et al., "1-bit Adam", 2021,
//             whose compressed all-reduce with errors kept on both sides this is, without its warm-up)
//   powersgd  a step of a power iteration for each matrix (Vogels et al., "PowerSGD", 2019, algorithms 1 and
//             2, which goes on from the last step's factor)
std::unique_ptr<GradientCompressor> gradient_compressor(const CompressionChoice& choice,
                                                        const std::vector<DenseLayer>& layers, int rank,
                                                        int ranks, std::uint64_t seed, int bucket);
std::unique_ptr<GradientCompressor> power_sgd_compressor(const std::vector<DenseLayer>& layers, double rank,
                                                         int ranks, std::uint64_t seed, int bucket);

}  // namespace rehearse
