// Communication of layers beside computation: rewrites written programs as strategy.tensor_overlap and
// strategy.overlap_passes say.
#pragma once

#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Rewrites the workers' programs of plan.schedule; does nothing where neither key asks for it. Afterwards
// * what ranks exchange between the segments of layers runs on one stream of its own, "layers", as nothing
// may
//   overtake between the same ranks. `weight_gradients` (Megatron-LM's asynchronous tensor all-reduce, and
//   its all-gather and reduce-scatter of sequence parallelism): the gradient of a product's input is reduced,
//   and its sharded input gathered again, while the gradient of its weights is computed. `chunks`
//   (Transformer Engine's tp_comm_overlap): besides, products are computed in parts, each as soon as its part
//   of the input has been gathered, and each part's result is reduced while the next is computed.
// * a forward pass and the backward pass behind it take turns on the compute stream, so that one computes
//   while the other communicates (DualPipe, DeepSeek-V3, arXiv 2412.19437, section 3.2.1; Megatron-LM's
//   --overlap-moe-expert-parallel-comm). Passes of the same micro-batch, and those of which one waits for
//   the other, stay one behind the other.
void overlap_communication(StepPlan& plan);

}  // namespace rehearse
