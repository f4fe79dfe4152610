// Declares the tensors that the passes of a stage's micro-batches read and write.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Tensors of a model chunk, by micro-batch; -1: there is none.
struct ChunkTensors {
  std::vector<int> activations, input, output, output_gradient, input_gradient;
  // For split backward passes: the activations that the input part is the last to read (the weight part reads
  // only the inputs of products with weights), and what it leaves to the weight part besides activations: the
  // gradients of the outputs of these products, and their inputs that were recomputed.
  std::vector<int> input_activations, kept_gradients, kept_recomputed;
};

struct StageTensors {
  std::vector<ChunkTensors> chunks;
  int between = -1;     // gradients between layers
  int recomputed = -1;  // recomputed activations of a layer, except kept_recomputed
  // Activations gathered from their shards, for forward passes and for all others; both are the same tensor
  // unless passes take turns.
  std::array<int, 2> gathered = {-1, -1};
  bool recomputes = false;
};

StageTensors add_pass_tensors(const StepPlan& plan, StageProgram& stage);

// Returns the bytes that layer `layer` passes to the next one, in the precision in which they are sent. A
// profile states the bytes as they were sent.
double boundary_bytes(const StepPlan& plan, int layer);
// Returns "3", or "3, chunk 1".
std::string item_text(const StageProgram& stage, const PassItem& item);
// Returns "all-gather forward 3, layer 5", for example, which is unique in the program.
std::string bucket_text(std::string_view what, const PassItem& item, const Bucket& bucket);

}  // namespace rehearse
