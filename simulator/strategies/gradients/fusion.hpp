// Models Horovod's tensor fusion: which gradients its background loop sends together, and when.
#pragma once

#include <vector>

#include "simulator/strategies/programs/ops.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Parameters of the loop. Sergeev and Del Balso, "Horovod: fast and easy distributed deep learning in
// TensorFlow" (2018). The defaults are those since Horovod 0.21 (before: 64 MB and 5 ms).
struct FusionBuffer {
  double bytes = 128 * 1048576.0;  // HOROVOD_FUSION_THRESHOLD; 0: every tensor is sent alone
  double cycle_s = 1e-3;           // HOROVOD_CYCLE_TIME; 0: the loop never sleeps
};

struct ReadyTensor {
  double bytes = 0;
  double ready_s = 0;  // from the beginning of the backward pass, when a cycle begins
};

// Tensors first to last (inclusive) of the given ones, which are sent together.
struct FusedTensors {
  int first = 0, last = 0;
  double tick_s = 0;  // when the loop wakes to send them
};

// Groups tensors, which are given in the order in which they become ready. The loop wakes every cycle and
// takes the tensors that have become ready since, as many neighbours at a time as fit the buffer; a larger
// tensor is sent alone.
std::vector<FusedTensors> fuse(const std::vector<ReadyTensor>& tensors, const FusionBuffer& buffer);

// A stage's gradients as the loop sends them. Each tensor is the gradient of a complete layer.
struct FusedBuckets {
  std::vector<Bucket> buckets;  // in order of the backward pass; the last one can have no parameters
  std::vector<double> tick_s;   // by bucket
  std::vector<int> tensors;     // number of tensors, by bucket
};
FusedBuckets fused_buckets(const StepPlan& plan, const LayerRange& layers, const FusionBuffer& buffer);

// Appends the buckets of another model chunk and returns that chunk's buckets.
std::vector<Bucket> append(FusedBuckets& all, const FusedBuckets& chunk);

// Writes the loop's wake-ups for a model chunk's buckets, timed from op `begin`. Sets `wakings` to the op
// that each bucket waits for, or -1 if there is none.
void write_cycles(StageProgram& stage, const FusedBuckets& fused, const Chunk& chunk, int begin,
                  std::vector<int>& wakings);
// Writes a copy of `bytes` of a bucket into the fusion buffer, or out of it, at memory bandwidth. Writes
// nothing for a bucket with a single tensor, which is not copied.
void write_copy(StepPlan& plan, StageProgram& stage, const FusedBuckets& fused, std::size_t bucket,
                const char* way, double bytes, std::vector<Dependency> after);

}  // namespace rehearse
