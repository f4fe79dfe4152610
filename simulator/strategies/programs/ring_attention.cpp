#include "simulator/strategies/programs/ring_attention.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/strategies/programs/ops.hpp"
#include "simulator/strategies/programs/pass_tensors.hpp"

namespace rehearse {
namespace {

bool is_backward(Pass pass) {
  return pass == Pass::backward || pass == Pass::backward_input;
}

}  // namespace

// Adds the buffers, or enlarges them to `bytes`: all layers use the same ones.
RingAttention::Buffers& RingAttention::add_buffers(Pass pass, double bytes, bool gradients) {
  Program& program = stage_.program;
  const bool apart = pass != Pass::forward && plan_.scenario.strategy.overlap_passes;
  Buffers& buffers = buffers_[apart ? 1 : 0];
  const auto hold = [&](int& tensor, const char* name) {
    if (tensor < 0) tensor = add_buffer(program, fmt::format("{}{}", name, apart ? " (backward)" : ""), 0);
    double& held = program.tensors[static_cast<std::size_t>(tensor)].bytes.base;
    held = std::max(held, bytes);
  };
  hold(buffers.held[0], "keys and values, even steps");
  hold(buffers.held[1], "keys and values, odd steps");
  if (!gradients) return buffers;
  hold(buffers.leaving[0], "gradients of keys and values, even steps");
  hold(buffers.leaving[1], "gradients of keys and values, odd steps");
  hold(buffers.arriving, "received gradients of keys and values");
  return buffers;
}

Op RingAttention::exchange(Pass pass, const PassItem& item, int segment, int step, double bytes) const {
  const ValueChange& keys = *plan_.walk.sites[static_cast<std::size_t>(segment)].ring;
  Op op;
  op.name = fmt::format("ring exchange {} {}, {}, step {}", kPassNames[static_cast<std::size_t>(pass)],
                        item_text(stage_, item), keys.of, step);
  op.kind = OpKind::exchange;
  op.stream = stream_named(stage_.program, "context");
  op.pass = pass;
  op.purpose = Purpose::context;
  op.first_layer = op.last_layer = keys.layer;
  op.microbatch = item.microbatch;
  op.action.kind = Action::Kind::pass_keys;
  op.action.part = step;
  op.action.of_gradient = is_backward(pass);
  op.action.first_segment = segment;
  op.action.end_segment = segment + 1;
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
  const bool backward = is_backward(pass);
  const Buffers& buffers = add_buffers(pass, bytes, backward);
  int computed = last_op_of_stream(program, stream_named(program, "compute")), exchanged = -1;

  const auto pass_on = [&](int step) {
    const bool sends_keys = step < ranks - 1, sends_gradients = backward && step > 0;
    if (!sends_keys && !sends_gradients) return;
    Op op = exchange(pass, item, segment, step, bytes * ((sends_keys ? 1 : 0) + (sends_gradients ? 1 : 0)));
    if (computed >= 0)
      op.after = {{computed}};  // the buffers at both ends are free, and the gradients are
                                // complete
    if (sends_keys && step > 0) op.reads.push_back(buffers.held[step % 2]);
    if (sends_keys) op.writes.push_back(buffers.held[(step + 1) % 2]);
    if (sends_gradients) op.reads.push_back(buffers.leaving[(step - 1) % 2]);
    if (sends_gradients) op.writes.push_back(buffers.arriving);
    exchanged = add_op(program, std::move(op));
  };
  for (int step = 0; step < ranks; ++step) {
    const int held = exchanged;  // the exchange that brought the keys and values of this step
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
    if (step > 0) op.reads.push_back(buffers.held[step % 2]);
    if (backward) op.writes.push_back(buffers.leaving[step % 2]);
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
