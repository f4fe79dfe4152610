// Gradients compressed before they are sent: what crosses the network, what it costs to compress, what is
// kept.
#pragma once

#include <string>
#include <vector>

#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// One part of a bucket's sync: kernels, or a collective of the data axis over `bytes` (see
// Collective::bytes).
struct SyncPart {
  std::string name;
  std::vector<Kernel> kernels;
  CollectiveKind kind = CollectiveKind::all_reduce;
  double bytes = 0;
};
struct CompressedSync {
  std::vector<SyncPart> parts;  // one after the other; the first compresses, the last decompresses
  double error_bytes = 0;       // of error feedback, kept from step to step
  double buffer_bytes = 0;      // of what is sent and received
};

// A weight's gradient, [rows, columns].
struct Matrix {
  double rows = 0, columns = 0;
};
// The matrices among the weights of a layer, by the products that make their gradients; of an embedding its
// tables. What else the layer has are vectors. A profile tells no shapes: none.
std::vector<Matrix> weight_matrices(const StepPlan& plan, int layer);

// How `ranks` ranks bring a bucket's gradients together. Sources of passes and bytes stand in
// compression.cpp.
CompressedSync compressed_sync(const CompressionChoice& choice, const StepPlan& plan, const Bucket& bucket,
                               int ranks);

// Compresses a bucket on the compute stream, as DDP's communication hooks do, which autograd calls: to be
// written right behind its backward pass. stage.backward_of_bucket is the compression then.
void write_compression(StepPlan& plan, StageProgram& stage, const CompressedSync& sync, std::size_t bucket);
// What follows it and `after`, on stream "gradients", beside the rest of the backward pass.
void write_compressed_sync(StepPlan& plan, StageProgram& stage, const CompressedSync& sync,
                           std::size_t bucket, std::vector<Dependency> after);

}  // namespace rehearse
