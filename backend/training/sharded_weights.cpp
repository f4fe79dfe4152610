#include "backend/training/sharded_weights.hpp"

#include <algorithm>

namespace rehearse {

ShardedWeights::ShardedWeights(const Role& workers, int rank, const Program& program,
                               const Perceptron& perceptron, const OptimizerSettings& optimizer,
                               Arithmetic& arithmetic)
    : arithmetic_(arithmetic), perceptron_(perceptron) {
  for (const Op& op : program.ops) {
    if (op.action.kind != Action::Kind::scatter_gradients || buckets_.count(op.first_layer) > 0) continue;
    const LayerRange layers{op.first_layer, op.last_layer};
    const std::vector<int> members = group_members(workers, op.collective.group, rank);
    const Part part{static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin()),
                    static_cast<int>(members.size())};
    const Array held = perceptron.weights(layers);
    const auto parts = static_cast<std::size_t>(part.of);
    const std::size_t each = (held.elements + parts - 1) / parts;
    std::vector<float> initial(each * parts, 0.0F);
    arithmetic.copy_to_host(0, held, initial.data());
    const auto own = initial.begin() + static_cast<std::ptrdiff_t>(each) * part.number;
    buckets_.emplace(
        op.first_layer,
        Bucket{layers, part, OwnedArray(arithmetic, initial.size(), Precision::fp32),
               OwnedArray(arithmetic, initial.size(), Precision::fp32),
               OwnedArray(arithmetic, each, Precision::fp32),
               ShardOptimizer(arithmetic, 0, std::vector<float>(own, own + static_cast<std::ptrdiff_t>(each)),
                              optimizer)});
  }
  arithmetic.settle(0);
}

Array ShardedWeights::own_part(const Bucket& bucket, const Array& all) {
  const std::size_t each = bucket.gradients->elements;
  return all.part(static_cast<std::size_t>(bucket.part.number) * each, each);
}

Array ShardedWeights::begin(int stream, const Op& op) {
  const Bucket& bucket = buckets_.at(op.first_layer);
  if (op.action.kind == Action::Kind::scatter_gradients) {
    const Array gradients = perceptron_.gradients(bucket.layers);
    arithmetic_.copy(stream, gradients, bucket.scattered->part(0, gradients.elements));
    return bucket.scattered;
  }
  arithmetic_.copy(stream, bucket.optimizer.weights(), own_part(bucket, bucket.gathered));
  return bucket.gathered;
}

void ShardedWeights::end(int stream, const Op& op) {
  Bucket& bucket = buckets_.at(op.first_layer);
  if (op.action.kind == Action::Kind::scatter_gradients) {
    const Array own = own_part(bucket, bucket.scattered);
    if (bucket.summed)
      arithmetic_.add(stream, own, bucket.gradients);
    else
      arithmetic_.copy(stream, own, bucket.gradients);
    bucket.summed = true;
  } else if (!bucket.current) {  // else a pass may be reading them
    const Array weights = perceptron_.weights(bucket.layers);
    arithmetic_.copy(stream, bucket.gathered->part(0, weights.elements), weights);
    bucket.current = true;
  }
}

Array ShardedWeights::gradients(const Op& op) const {
  return buckets_.at(op.first_layer).gradients;
}

void ShardedWeights::update(int stream) {
  for (auto& [layer, bucket] : buckets_) {
    bucket.optimizer.apply(stream, bucket.gradients);
    bucket.summed = bucket.current = false;
  }
}

}  // namespace rehearse
