#include "backend/training/carried_out.hpp"

#include <fmt/format.h>

#include <set>

namespace rehearse {
namespace {

// The switches have no default, so that the compiler reports an action or a kind of op that is new.
bool is_carried_out(const Op& op) {
  switch (op.action.kind) {
    case Action::Kind::none:
      return true;
    case Action::Kind::forward:
    case Action::Kind::recompute:
    case Action::Kind::backward:
    case Action::Kind::backward_input:
    case Action::Kind::backward_weight:
    case Action::Kind::loss:
    case Action::Kind::add:
    case Action::Kind::update:
      return op.kind == OpKind::compute;
    case Action::Kind::compress:
      return op.kind == OpKind::compute || op.kind == OpKind::collective;
    case Action::Kind::change:
    case Action::Kind::sum_shared:
    case Action::Kind::sum_tied:
    case Action::Kind::sum_part:
    case Action::Kind::scatter_gradients:
    case Action::Kind::gather_weights:
      return op.kind == OpKind::collective;
    case Action::Kind::pass_keys:
      return op.kind == OpKind::exchange;
  }
  return false;
}

// Copies and updates on the host need memory that real ranks do not have there.
bool is_carried_out_by_host(const Op& op) {
  switch (op.host_action) {
    case HostAction::load_batch:
    case HostAction::write_checkpoint:
    case HostAction::sleep:
      return op.host_bytes == 0;
    case HostAction::copy_to_host:
    case HostAction::copy_to_device:
    case HostAction::update:
    case HostAction::read_nvme:
    case HostAction::write_nvme:
      return false;
  }
  return false;
}

bool is_known_change(const Op& op) {
  if (op.action.kind != Action::Kind::change) return true;
  switch (op.collective.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return true;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return false;
  }
  return false;
}

}  // namespace

std::string why_not_carried_out(const Schedule& schedule) {
  for (const Program& program : schedule.programs)
    for (const Op& op : program.ops)
      if (!is_carried_out(op) || !is_known_change(op) ||
          (op.kind == OpKind::host && !is_carried_out_by_host(op)))
        return fmt::format("real ranks do not carry out \"{}\", {} of kind {}", op.name,
                           op.kind == OpKind::host
                               ? kHostActionNames[static_cast<std::size_t>(op.host_action)]
                               : "an action",
                           kOpKindNames[static_cast<std::size_t>(op.kind)]);
  return "";
}

bool cuts_layers(const Scenario& scenario, const Schedule& schedule) {
  if (scenario.strategy.bucket_unit == BucketUnit::layer) return false;
  for (const Program& program : schedule.programs) {
    std::set<int> seen;
    for (const Tensor& tensor : program.tensors)
      for (int i = tensor.first_layer; tensor.kind == TensorKind::gradient && i <= tensor.last_layer; ++i)
        if (!seen.insert(i).second) return true;
  }
  return false;
}

}  // namespace rehearse
