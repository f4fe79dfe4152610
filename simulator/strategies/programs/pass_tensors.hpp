// The tensors that the passes of a stage's micro-batches read and write.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// By micro-batch; -1: there is none.
struct ChunkTensors {
  std::vector<int> activations, input, output, output_gradient, input_gradient;
  // Of a backward pass that is split: activations that its input part reads last, as its weight part reads
  // nothing but the inputs of products with weights; what it leaves to the weight part, besides activations:
  // the gradients of what these products give, and their inputs that were computed again.
  std::vector<int> input_activations, kept_gradients, kept_recomputed;
};

struct StageTensors {
  std::vector<ChunkTensors> chunks;
  int between = -1;     // gradients between layers
  int recomputed = -1;  // activations of a layer that are computed again, but for kept_recomputed
  // Activations gathered from their shards, of forward passes and of others; one tensor for both, unless
  // these take turns.
  std::array<int, 2> gathered = {-1, -1};
  bool recomputes = false;
};

StageTensors add_pass_tensors(const StepPlan& plan, StageProgram& stage);

// What layer `layer` hands to the next one, in the precision in which it is sent. A profile tells the bytes
// as they were sent.
double boundary_bytes(const StepPlan& plan, int layer);
// "3", or "3, chunk 1".
std::string item_text(const StageProgram& stage, const PassItem& item);

}  // namespace rehearse
