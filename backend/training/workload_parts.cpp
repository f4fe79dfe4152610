#include "backend/training/workload_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rehearse {
namespace {

bool has(const Schedule& schedule, const auto& is_so) {
  return std::any_of(schedule.programs.begin(), schedule.programs.end(), [&](const Program& program) {
    return std::any_of(program.ops.begin(), program.ops.end(), is_so);
  });
}

}  // namespace

long kept_steps(const TrainingOptions& options, long steps, double bytes_of_step) {
  const double most = options.on_processors ? kMostDataOnProcessors : kMostData;
  const double fitting = std::max(2.0, std::floor(most / std::max(1.0, bytes_of_step)));
  return static_cast<double>(steps) <= fitting ? std::max(steps, 1L) : static_cast<long>(fitting);
}

OptimizerSettings optimizer_of(const Scenario& scenario) {
  OptimizerSettings settings = default_settings(scenario.training.optimizer);
  if (scenario.run.learning_rate > 0) settings.learning_rate = static_cast<float>(scenario.run.learning_rate);
  return settings;
}

std::uint64_t hash_of_bytes(const void* data, std::size_t bytes, std::uint64_t hash) {
  constexpr std::uint64_t kPrime = 1099511628211ULL;
  const auto* from = static_cast<const std::byte*>(data);
  for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + i, std::min(sizeof word, bytes - i));
    hash = (hash ^ word) * kPrime;
  }
  return hash;
}

std::uint64_t hash_of(Arithmetic& arithmetic, int stream, const Array& array, std::uint64_t hash) {
  std::vector<float> numbers(array.elements);
  arithmetic.copy_to_host(stream, array, numbers.data());
  return hash_of_bytes(numbers.data(), numbers.size() * sizeof(float), hash);
}

Payload payload(const Array& array) {
  return {array.data, array.bytes(), array.precision};
}

int tensor_of(const Op& op, int message) {
  const bool send = op.messages[message].direction == Message::Direction::send;
  const std::vector<int>& tensors = send ? op.reads : op.writes;
  std::size_t number = 0;
  for (int m = 0; m < message; ++m)
    if (op.messages[m].direction == op.messages[message].direction) ++number;
  if (tensors.empty()) return -1;
  return tensors[std::min(number, tensors.size() - 1)];
}

bool is_update(const Op& op) {
  return op.action.kind == Action::Kind::update;
}

bool compresses(const Schedule& schedule) {
  return has(schedule, [](const Op& op) { return op.action.kind == Action::Kind::compress; });
}

bool averages(const Schedule& schedule) {
  return has(schedule, [](const Op& op) {
    return op.kind == OpKind::collective && op.collective.reduction == Collective::Reduction::mean;
  });
}

bool gathers_outputs(const Schedule& schedule) {
  return has(schedule, [](const Op& op) { return op.action.kind == Action::Kind::loss; });
}

bool computes(const Program& program, Action::Kind action) {
  return std::any_of(program.ops.begin(), program.ops.end(),
                     [&](const Op& op) { return op.action.kind == action; });
}

bool is_of_shards(const Op& op) {
  return op.action.kind == Action::Kind::scatter_gradients || op.action.kind == Action::Kind::gather_weights;
}

bool is_pass(const Op& op) {
  switch (op.action.kind) {
    case Action::Kind::forward:
    case Action::Kind::recompute:
    case Action::Kind::backward:
    case Action::Kind::backward_input:
    case Action::Kind::backward_weight:
      return true;
    default:
      return false;
  }
}

bool has_shards(const Schedule& schedule) {
  return has(schedule, is_of_shards);
}

std::set<int> gradients_apart(const Program& program) {
  std::set<int> apart;
  for (const Op& op : program.ops)
    if (op.action.kind == Action::Kind::swap) apart.insert(op.writes.begin(), op.writes.end());
  for (const Op& op : program.ops)
    if (is_pass(op))
      for (const int written : op.writes) apart.erase(written);
  return apart;
}

Peer far_side(const Program& program, int tensor) {
  for (const Op& op : program.ops)
    for (const std::vector<int>* used : {&op.reads, &op.writes})
      if (op.kind == OpKind::exchange && !used->empty() && used->front() == tensor)
        return op.messages.front().peer;
  return {};
}

void add_further_slots(Arithmetic& arithmetic, int stream, const Array& slots, const Array& sum) {
  for (std::size_t at = sum.elements; at < slots.elements; at += sum.elements)
    arithmetic.add(stream, slots.part(at, sum.elements), sum);
}

}  // namespace rehearse
