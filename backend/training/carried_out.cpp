#include "backend/training/carried_out.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "backend/training/workload_parts.hpp"

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
    case Action::Kind::swap:
      return op.kind == OpKind::compute && op.writes.size() == 2;
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

// Other copies, and updates on the host, need memory that real ranks do not have there.
bool is_carried_out_by_host(const Op& op) {
  switch (op.host_action) {
    case HostAction::load_batch:
    case HostAction::write_checkpoint:
    case HostAction::sleep:
      return op.host_bytes == 0;
    case HostAction::copy_to_device:
      return op.purpose == Purpose::input;
    case HostAction::copy_to_host:
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

// Maxima are values of layers, and means are those of weights.
bool is_known_reduction(const Program& program, const Op& op) {
  if (op.kind != OpKind::collective) return true;
  switch (op.collective.reduction) {
    case Collective::Reduction::sum:
      return true;
    case Collective::Reduction::maximum:
      return op.action.kind == Action::Kind::change;
    case Collective::Reduction::mean:
      return op.collective.kind == CollectiveKind::all_reduce &&
             std::all_of(op.writes.begin(), op.writes.end(), [&](int tensor) {
               const TensorKind kind = program.tensors[static_cast<std::size_t>(tensor)].kind;
               return kind == TensorKind::weight || kind == TensorKind::optimizer_state;
             });
  }
  return false;
}

template <std::size_t kNames>
std::string_view name_in(const std::array<std::string_view, kNames>& names, std::size_t number) {
  return number < kNames ? names[number] : "unknown";
}

// Returns how a worker's op uses gradients that the network does not have, if real ranks would take the
// network's instead; empty if they would not.
std::string uses_other_gradients(const Program& program) {
  std::set<int> of_network;  // with shards: whatever is not swapped
  const bool shards = computes(program, Action::Kind::scatter_gradients);
  for (const Op& op : program.ops)
    if (is_pass(op)) of_network.insert(op.writes.begin(), op.writes.end());
  const std::set<int> apart = gradients_apart(program);
  const auto others = [&](const std::vector<int>& tensors, bool may_be_apart) {
    return std::any_of(tensors.begin(), tensors.end(), [&](int tensor) {
      if (program.tensors[static_cast<std::size_t>(tensor)].kind != TensorKind::gradient) return false;
      return apart.count(tensor) > 0 ? !may_be_apart : !shards && of_network.count(tensor) == 0;
    });
  };
  for (const Op& op : program.ops) {
    const bool sums = op.kind == OpKind::collective && op.action.kind == Action::Kind::none;
    const bool compresses = op.action.kind == Action::Kind::compress;  // it has errors of its own
    if (!compresses && others(op.reads, sums || op.action.kind == Action::Kind::swap))
      return fmt::format("\"{}\" reads gradients that no pass computes", op.name);
  }
  return "";
}

}  // namespace

std::string why_not_carried_out(const Schedule& schedule) {
  for (const Program& program : schedule.programs) {
    for (const Op& op : program.ops)
      if (!is_carried_out(op) || !is_known_change(op) || !is_known_reduction(program, op) ||
          (op.kind == OpKind::host && !is_carried_out_by_host(op)))
        return fmt::format("real ranks do not carry out \"{}\", {} of kind {}", op.name,
                           op.kind == OpKind::host
                               ? name_in(kHostActionNames, static_cast<std::size_t>(op.host_action))
                               : "an action",
                           name_in(kOpKindNames, static_cast<std::size_t>(op.kind)));
    if (!computes(program, Action::Kind::forward)) continue;
    if (std::string why = uses_other_gradients(program); !why.empty()) return why;
  }
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
