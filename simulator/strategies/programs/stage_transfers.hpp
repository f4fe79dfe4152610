// Describes what a pipeline stage exchanges with its neighbours: activations in forward passes, their
// gradients in backward passes.
#pragma once

#include <string>

#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/pass_tensors.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

class StageTransfers {
public:
  // All arguments must outlive this object.
  StageTransfers(const StepPlan& plan, const StageProgram& stage, const StageTensors& tensors)
      : plan_(plan),
        stage_(stage),
        tensors_(tensors),
        placement_(order_of(plan.scenario.strategy.schedule).placement) {}

  // Return whether a pass's input comes from another stage, and whether its result goes to one.
  bool receives(const PassItem& item) const { return source(item) >= 0 && source(item) != stage_.stage; }
  bool sends(const PassItem& item) const { return target(item) >= 0 && target(item) != stage_.stage; }
  // Returns whether `a` sends to the neighbour from which `b` receives, so that one exchange can do both.
  bool together(const PassItem& a, const PassItem& b) const {
    return a.forward() != b.forward() && sends(a) && receives(b);
  }

  // Returns the name of the stream: each direction has a stream for sends and one for receives. In a vee, its
  // two chunks have neighbours on different sides, which must not wait for each other. `way`: "send" or
  // "receive".
  std::string stream_of(const char* way, const PassItem& item) const;
  // Adds the receive before a pass, or the send after it, to an exchange.
  void add_message(Op& op, const PassItem& item, Message::Direction way) const;

private:
  // Return the stage from which a pass's input comes, and the one to which its result goes; -1: none.
  int source(const PassItem& item) const {
    const Chunk& chunk = stage_.chunks[item.chunk];
    return item.pass == Pass::backward_weight ? -1 : item.forward() ? chunk.before : chunk.behind;
  }
  int target(const PassItem& item) const {
    const Chunk& chunk = stage_.chunks[item.chunk];
    return item.pass == Pass::backward_weight ? -1 : item.forward() ? chunk.behind : chunk.before;
  }

  const StepPlan& plan_;
  const StageProgram& stage_;
  const StageTensors& tensors_;
  PartPlacement placement_;
};

}  // namespace rehearse
