// Horovod's tensor fusion: which gradients its background loop sends together, and when.
#pragma once

#include <vector>

#include "simulator/strategies/programs/ops.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Sergeev and Del Balso, "Horovod: fast and easy distributed deep learning in TensorFlow" (2018). The
// defaults are those since Horovod 0.21 (before: 64 MB and 5 ms).
struct FusionBuffer {
  double bytes = 128 * 1048576.0;  // HOROVOD_FUSION_THRESHOLD; 0: every tensor alone
  double cycle_s = 1e-3;           // HOROVOD_CYCLE_TIME; 0: the loop never sleeps
};

struct ReadyTensor {
  double bytes = 0;
  double ready_s = 0;  // from the beginning of the backward pass, which is where a cycle begins
};

// Tensors first to last (inclusive) of those given.
struct FusedTensors {
  int first = 0, last = 0;
  double tick_s = 0;  // when the loop wakes that sends them
};

// Tensors in the order in which they become ready. The loop wakes every cycle and takes what has become ready
// since, as many neighbours at a time as the buffer holds; a larger tensor goes alone.
std::vector<FusedTensors> fuse(const std::vector<ReadyTensor>& tensors, const FusionBuffer& buffer);

// A stage's gradients as the loop sends them. A tensor is the gradient of a whole layer.
struct FusedBuckets {
  std::vector<Bucket> buckets;  // in order of the backward pass; the last one may have no parameters
  std::vector<double> tick_s;   // by bucket
  std::vector<int> tensors;     // in each
};
FusedBuckets fused_buckets(const StepPlan& plan, const LayerRange& layers, const FusionBuffer& buffer);

// Adds those of another chunk, and returns its buckets.
std::vector<Bucket> append(FusedBuckets& all, const FusedBuckets& chunk);

// Writes the loop's wakings for a chunk's buckets, counted from op `begin`, and to `wakings` for each bucket
// the op that it waits for, -1 if none.
void write_cycles(StageProgram& stage, const FusedBuckets& fused, const Chunk& chunk, int begin,
                  std::vector<int>& wakings);
// Copies `bytes` of a bucket into the buffer, or out of it, at memory bandwidth. One tensor alone is not
// copied: nothing is written then.
void write_copy(StepPlan& plan, StageProgram& stage, const FusedBuckets& fused, std::size_t bucket,
                const char* way, double bytes, std::vector<Dependency> after);

}  // namespace rehearse
