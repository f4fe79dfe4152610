#include "simulator/strategies/programs/stage_transfers.hpp"

#include <fmt/format.h>

namespace rehearse {
namespace {

const char* direction(const PassItem& item) {
  return item.forward() ? "forward" : "backward";
}

}  // namespace

std::string StageTransfers::stream_of(const char* way, const PassItem& item) const {
  std::string name = fmt::format("{} {}", way, direction(item));
  if (placement_ == PartPlacement::vee) name += fmt::format(", chunk {}", item.chunk);
  return name;
}

void StageTransfers::add_message(Op& op, const PassItem& item, Message::Direction way) const {
  const bool send = way == Message::Direction::send;
  const int k = item.microbatch;
  const LayerRange layers = stage_.chunks[item.chunk].layers;
  const ChunkTensors& tensors = tensors_.chunks[item.chunk];
  // In a loop, the first stage holds the part after the last stage's; in a vee, the last stage holds two
  // parts in a row. A stage can then send both directions' tensors to the same neighbour, so the tag
  // distinguishes the directions.
  const bool chunked = stage_.chunks.size() > 1, wraps = placement_ == PartPlacement::loop;
  const int offset =
      wraps ? (item.forward() == send ? 1 : -1) : (send ? target(item) : source(item)) - stage_.stage;
  Message message;
  message.direction = way;
  message.peer = Peer::along(plan_.pipeline_axis, offset, chunked && wraps);
  message.tag = chunked && !item.forward() ? 1 : 0;
  message.bytes = boundary_bytes(plan_, item.forward() == send ? layers.last : layers.first - 1);
  if (!op.name.empty()) op.name += chunked ? "; " : ", ";
  op.name += fmt::format("{} {} {}", send ? "send" : "receive", direction(item), item_text(stage_, item));
  if (op.messages.empty()) {
    op.kind = OpKind::exchange;
    op.purpose = Purpose::pipeline;
    op.pass = item.forward() ? Pass::forward : Pass::backward;
    op.microbatch = k;
  }
  op.messages.push_back(std::move(message));
  if (send)
    op.reads.push_back((item.forward() ? tensors.output : tensors.input_gradient)[k]);
  else
    op.writes.push_back((item.forward() ? tensors.input : tensors.output_gradient)[k]);
}

}  // namespace rehearse
