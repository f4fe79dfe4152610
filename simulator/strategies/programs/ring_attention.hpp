// Attention over a sequence that the ranks of the context axis share: they pass their keys and values around
// a ring.
#pragma once

#include <array>
#include <functional>

#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Writes the steps of attention to a stage's program. Keys and values go to the next rank while attention to
// those at hand is computed, as in Transformer Engine's AttnFuncWithCPAndKVP2P. The backward pass sends their
// gradients one step behind them, so that they are back home after as many steps as the ring has ranks.
class RingAttention {
public:
  RingAttention(const StepPlan& plan, StageProgram& stage) : plan_(plan), stage_(stage) {}

  // Writes one pass over the attention that is segment `segment` of the walk. `compute` makes the op of one
  // step. Returns the last op that computes; `received`: an op to wait for first, and afterwards the last
  // exchange, if the next op has to wait for it (-1: none).
  int write(Pass pass, const PassItem& item, int segment, int& received,
            const std::function<Op(int step)>& compute);

private:
  void add_buffers(double bytes, bool gradients);
  Op exchange(Pass pass, const PassItem& item, const ValueChange& keys, int step, double bytes) const;

  const StepPlan& plan_;
  StageProgram& stage_;
  // Tensors by parity of the step; -1: not yet wanted.
  std::array<int, 2> held_ = {-1, -1};     // keys and values at hand
  std::array<int, 2> leaving_ = {-1, -1};  // their gradients
  int arriving_ = -1;                      // gradients that come from the rank before
};

}  // namespace rehearse
