#include "simulator/strategies/programs/ring_attention.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/strategies/programs/ops.hpp"
#include "simulator/strategies/programs/pass_tensors.hpp"

namespace rehearse {

// All layers use the same buffers.
void RingAttention::add_buffers(double bytes, bool gradients) {
  Program& program = stage_.program;
  const auto hold = [&](int& tensor, const char* name) {
    if (tensor < 0) tensor = add_buffer(program, name, 0);
    double& held = program.tensors[static_cast<std::size_t>(tensor)].bytes.base;
    held = std::max(held, bytes);
  };
  hold(held_[0], "keys and values, even steps");
  hold(held_[1], "keys and values, odd steps");
  if (!gradients) return;
  hold(leaving_[0], "gradients of keys and values, even steps");
  hold(leaving_[1], "gradients of keys and values, odd steps");
  hold(arriving_, "received gradients of keys and values");
}

Op RingAttention::exchange(Pass pass, const PassItem& item, const ValueChange& keys, int step,
                           double bytes) const {
  Op op;
  op.name = fmt::format("ring exchange {} {}, {}, step {}", kPassNames[static_cast<std::size_t>(pass)],
                        item_text(stage_, item), keys.of, step);
  op.kind = OpKind::exchange;
  op.stream = stream_named(stage_.program, "context");
  op.pass = pass;
  op.purpose = Purpose::context;
  op.first_layer = op.last_layer = keys.layer;
  op.microbatch = item.microbatch;
  for (const auto way : {Message::Direction::send, Message::Direction::receive}) {
    Message message;
    message.direction = way;
    message.peer = Peer::along(plan_.context_axis, way == Message::Direction::send ? 1 : -1, true);
    message.bytes = bytes;
    op.messages.push_back(std::move(message));
  }
  return op;
}

int RingAttention::write(Pass pass, const PassItem& item, int segment, int& received,
                         const std::function<Op(int step)>& compute) {
  Program& program = stage_.program;
  const ValueChange& keys = *plan_.walk.sites[static_cast<std::size_t>(segment)].ring;
  const std::vector<RingStep>& steps = plan_.walk.segments[static_cast<std::size_t>(segment)]->steps;
  const int ranks = static_cast<int>(steps.size());
  const double bytes = keys.change.elements * keys.element / ranks;
  const bool backward = pass == Pass::backward || pass == Pass::backward_input;
  add_buffers(bytes, backward);
  int computed = last_op_of_stream(program, stream_named(program, "compute")), exchanged = -1;

  const auto pass_on = [&](int step) {
    const bool sends_keys = step < ranks - 1, sends_gradients = backward && step > 0;
    if (!sends_keys && !sends_gradients) return;
    Op op = exchange(pass, item, keys, step, bytes * ((sends_keys ? 1 : 0) + (sends_gradients ? 1 : 0)));
    if (computed >= 0) op.after = {{computed}};  // the buffers at both ends are free, the gradients complete
    if (sends_keys && step > 0) op.reads.push_back(held_[step % 2]);
    if (sends_keys) op.writes.push_back(held_[(step + 1) % 2]);
    if (sends_gradients) op.reads.push_back(leaving_[(step - 1) % 2]);
    if (sends_gradients) op.writes.push_back(arriving_);
    exchanged = add_op(program, std::move(op));
  };
  for (int step = 0; step < ranks; ++step) {
    const int held = exchanged;  // brought what this step attends to
    pass_on(step);
    Op op = compute(step);
    op.name += fmt::format(", step {}", step);
    op.action.part = step;
    if (const int first = steps[static_cast<std::size_t>(step)].first_rank; first > 0) {
      op.share.axis = plan_.context_axis;
      for (int rank = 0; rank < ranks; ++rank) op.share.values.push_back(rank < first ? 0 : 1);
    }
    if (held >= 0) op.after.push_back({held});
    if (step == 0 && received >= 0) op.after.push_back({received});
    if (step > 0) op.reads.push_back(held_[step % 2]);
    if (backward) op.writes.push_back(leaving_[step % 2]);
    computed = add_op(program, std::move(op));
  }
  received = -1;
  if (backward) {
    pass_on(ranks);
    received = exchanged;
  }
  return computed;
}

}  // namespace rehearse
