// Writes attention over a sequence that is split over the ranks of the context axis, which pass their keys
// and values around a ring.
#pragma once

#include <array>
#include <functional>

#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Writes the steps of attention to a stage's program. Keys and values are sent to the next rank while
// attention to the current ones is computed, as in Transformer Engine's AttnFuncWithCPAndKVP2P. The backward
// pass sends their gradients one step later, so that they arrive at the rank that owns them after as many
// steps as the ring has ranks.
class RingAttention {
public:
  RingAttention(const StepPlan& plan, StageProgram& stage) : plan_(plan), stage_(stage) {}

  // Writes one pass over the attention that is segment `segment` of the walk. `compute` makes the op of one
  // step. Returns the last op that computes. `received`: on entry, an op to wait for first; on return, the
  // last exchange if the next op has to wait for it (-1: none).
  int write(Pass pass, const PassItem& item, int segment, int& received,
            const std::function<Op(int step)>& compute);

private:
  // Tensors by parity of the step; -1: not needed yet.
  struct Buffers {
    std::array<int, 2> held = {-1, -1};     // current keys and values
    std::array<int, 2> leaving = {-1, -1};  // their gradients
    int arriving = -1;                      // gradients received from the previous rank
  };
  Buffers& add_buffers(Pass pass, double bytes, bool gradients);
  Op exchange(Pass pass, const PassItem& item, int segment, int step, double bytes) const;

  const StepPlan& plan_;
  StageProgram& stage_;
  // Buffers of forward passes and of all others; the first are used for both, unless passes take turns.
  std::array<Buffers, 2> buffers_;
};

}  // namespace rehearse
