// Overlaps the communication of layers with computation: rewrites finished programs according to
// strategy.tensor_overlap and strategy.overlap_passes.
#pragma once

#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Rewrites the workers' programs of plan.schedule; does nothing if neither key asks for it. Afterwards:
// * What ranks exchange between the segments of layers runs on a separate stream, "layers", because messages
// between the same ranks must not overtake each other. `weight_gradients` (Megatron-LM's asynchronous tensor
// all-reduce, and its all-gather and reduce-scatter of sequence parallelism): the gradient of a product's
// input is reduced, and its sharded input gathered again, while the gradient of its weights is computed.
// `chunks` (Transformer Engine's tp_comm_overlap): in addition, products are computed in parts, each as soon
// as its part of the input has been gathered, and each part's result is reduced while the next part is
// computed.
// * A forward pass and the backward pass after it take turns on the compute stream, so that one computes
// while the other communicates (DualPipe, DeepSeek-V3, arXiv 2412.19437, section 3.2.1; Megatron-LM's
// --overlap-moe-expert-parallel-comm). Passes of the same micro-batch, and passes of which one waits for the
// other, still run one after the other.
void overlap_communication(StepPlan& plan);

}  // namespace rehearse
