#include "backend/training/server_weights.hpp"

#include <algorithm>

#include "backend/training/workload_parts.hpp"

namespace rehearse {
namespace {

int weights_of(const Program& program, const Op& update) {
  for (const int t : update.writes)
    if (program.tensors[static_cast<std::size_t>(t)].kind == TensorKind::weight) return t;
  return -1;
}

}  // namespace

ServerWeights::ServerWeights(const Scenario& scenario, const Mesh& workers, const Program& program,
                             Part share, Arithmetic& arithmetic)
    : arithmetic_(arithmetic), program_(program) {
  for (const Op& op : program.ops) {
    const int t = is_update(op) ? weights_of(program, op) : -1;
    if (t < 0 || has(t)) continue;
    const Tensor& tensor = program.tensors[static_cast<std::size_t>(t)];
    const std::vector<float> whole =
        initial_weights(scenario, {tensor.first_layer, tensor.last_layer},
                        factor_coordinates(scenario, workers, far_side(program, t).where));
    const auto from = [&](int number) {
      return whole.begin() + static_cast<std::ptrdiff_t>(share_begin(whole.size(), number, share.of));
    };
    weights_.emplace(t,
                     Weights{{arithmetic, 0, std::vector<float>(from(share.number), from(share.number + 1)),
                              optimizer_of(scenario), scenario.training.precision},
                             tensor.shared});
    last_ = std::max(last_, t);
  }
}

ServerWeights::Weights& ServerWeights::updated_by(const Op& update) {
  return weights_.at(weights_of(program_, update));
}

void ServerWeights::update(int stream, const Op& update, const Array& pushed) {
  Weights& weights = updated_by(update);
  const Array sum = pushed.part(0, weights.optimizer.weights().elements);
  add_further_slots(arithmetic_, stream, pushed, sum);
  const std::lock_guard lock(mutex_);
  weights.optimizer.apply(stream, sum);
  if (!weights.in_no_order) return;
  arithmetic_.settle(stream);
  // Counts other ranks' pushes since the rank that pushed was last sent weights.
  const int pusher = static_cast<int>(far_side(program_, update.reads.front()).index.base);
  if (&weights == &weights_.at(last_)) staleness_.push_back(weights.applied - weights.answered[pusher]);
  ++weights.applied;
}

Array ServerWeights::sent(int stream, int tensor, int to) {
  const std::lock_guard lock(mutex_);
  Weights& weights = weights_.at(tensor);
  const Array now = weights.optimizer.weights();
  if (!weights.in_no_order) return now;
  weights.answered[to] = weights.applied;
  OwnedArray& answer = answers_[{tensor, to}];
  if (answer->elements == 0) answer = OwnedArray(arithmetic_, now.elements, now.precision);
  arithmetic_.copy(stream, now, answer);
  arithmetic_.settle(stream);
  return answer;
}

}  // namespace rehearse
