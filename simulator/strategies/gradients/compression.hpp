// Compresses gradients before they are sent: the bytes on the network, the cost of compression, and the state
// that is retained.
#pragma once

#include <string>
#include <vector>

#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// One part of a bucket's sync: kernels, or a collective over the data axis of `bytes` bytes (see
// Collective::bytes).
struct SyncPart {
  std::string name;
  std::vector<Kernel> kernels;
  CollectiveKind kind = CollectiveKind::all_reduce;
  double bytes = 0;
};
struct CompressedSync {
  std::vector<SyncPart> parts;  // run one after the other; the first compresses, the last decompresses
  double error_bytes = 0;       // of error feedback, retained from step to step
  double buffer_bytes = 0;      // of the sent and received data
};

// The shape of a weight's gradient, [rows, columns].
struct Matrix {
  double rows = 0, columns = 0;
};
// Returns the matrices among the weights of a layer, by the products that compute their gradients; for an
// embedding, its tables. All other parameters of the layer are vectors. Returns none for a profile, which
// does not state shapes.
std::vector<Matrix> weight_matrices(const StepPlan& plan, int layer);

// Returns how `ranks` ranks sum a bucket's gradients. compression.cpp cites the sources of its passes and
// bytes.
CompressedSync compressed_sync(const CompressionChoice& choice, const StepPlan& plan, const Bucket& bucket,
                               int ranks);

// Writes the compression of a bucket on the compute stream, as DDP's communication hooks do, which autograd
// calls. Call it directly after the bucket's backward pass is written. Sets stage.backward_of_bucket to the
// compression.
void write_compression(StepPlan& plan, StageProgram& stage, const CompressedSync& sync, std::size_t bucket);
// Writes the remaining parts on stream "gradients", after `after` and concurrently with the rest of the
// backward pass.
void write_compressed_sync(StepPlan& plan, StageProgram& stage, const CompressedSync& sync,
                           std::size_t bucket, std::vector<Dependency> after);

}  // namespace rehearse
