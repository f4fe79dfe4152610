#include "backend/training/sharded_weights.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/text/error.hpp"

namespace rehearse {

ShardedWeights::ShardedWeights(const Role& workers, int rank, const Program& program,
                               const TrainedNetwork& network, const OptimizerSettings& optimizer,
                               Arithmetic& arithmetic)
    : arithmetic_(arithmetic), network_(network) {
  for (const Op& op : program.ops) {
    if (op.action.kind != Action::Kind::scatter_gradients || buckets_.count(op.first_layer) > 0) continue;
    const LayerRange layers{op.first_layer, op.last_layer};
    const std::vector<int> members = group_members(workers, op.collective.group, rank);
    const Part part{static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin()),
                    static_cast<int>(members.size())};
    Bucket bucket{layers, part, runs_of(layers, part.of)};
    const Run& last = bucket.runs.back();
    const std::size_t each = last.at + last.each, all = each * static_cast<std::size_t>(part.of);
    bucket.scattered = OwnedArray(arithmetic, all, Precision::fp32);
    bucket.gathered = OwnedArray(arithmetic, all, Precision::fp32);
    bucket.gradients = OwnedArray(arithmetic, each, Precision::fp32);
    copy(0, bucket, network.weights(layers), bucket.gathered, true);
    std::vector<float> initial(all);
    arithmetic.copy_to_host(0, bucket.gathered, initial.data());
    const auto own = initial.begin() + static_cast<std::ptrdiff_t>(each) * part.number;
    bucket.optimizer = std::make_unique<ShardOptimizer>(
        arithmetic, 0, std::vector<float>(own, own + static_cast<std::ptrdiff_t>(each)), optimizer);
    buckets_.emplace(op.first_layer, std::move(bucket));
  }
  arithmetic.settle(0);
}

// A table that stands at the beginning or the end of its bucket is shared out by itself, so that its shards
// are the same ones on both stages that keep it.
std::vector<ShardedWeights::Run> ShardedWeights::runs_of(LayerRange layers, int parts) const {
  const auto n = static_cast<std::size_t>(parts);
  const Array all = network_.gradients(layers);
  const Run whole{0, all.elements, 0, (all.elements + n - 1) / n, false};
  Array table;
  for (int layer = layers.first; layer <= layers.last && table.elements == 0; ++layer)
    table = network_.tied_gradient(layer);
  if (table.elements == 0 || table.elements % n != 0 || table.elements == all.elements) {
    Run only = whole;
    only.tied = table.elements > 0 && table.elements == all.elements;
    return {only};
  }
  const auto first = static_cast<std::size_t>(table.data - all.data) / all.element_size();
  const std::size_t rest = all.elements - table.elements, each = table.elements / n;
  return {{first, table.elements, 0, each, true},
          {first == 0 ? table.elements : 0, rest, each, (rest + n - 1) / n, false}};
}

// From weights or gradients layer after layer to the parts of all ranks, one after the other, or back.
void ShardedWeights::copy(int stream, const Bucket& bucket, const Array& layers, const Array& parts,
                          bool to_parts) const {
  const auto n = static_cast<std::size_t>(bucket.part.of);
  const std::size_t of_rank = parts.elements / n;
  for (const Run& run : bucket.runs)
    for (std::size_t r = 0; r < n; ++r) {
      const std::size_t first = std::min(r * run.each, run.elements),
                        count = std::min(run.each, run.elements - first);
      if (count == 0) continue;
      const Array in_layers = layers.part(run.first + first, count),
                  in_parts = parts.part(r * of_rank + run.at, count);
      arithmetic_.copy(stream, to_parts ? in_layers : in_parts, to_parts ? in_parts : in_layers);
    }
}

Array ShardedWeights::own_part(const Bucket& bucket, const Array& all) {
  const std::size_t each = bucket.gradients->elements;
  return all.part(static_cast<std::size_t>(bucket.part.number) * each, each);
}

Array ShardedWeights::begin(int stream, const Op& op) {
  const Bucket& bucket = buckets_.at(op.first_layer);
  if (op.action.kind == Action::Kind::scatter_gradients) {
    copy(stream, bucket, network_.gradients(bucket.layers), bucket.scattered, true);
    return bucket.scattered;
  }
  arithmetic_.copy(stream, bucket.optimizer->weights(), own_part(bucket, bucket.gathered));
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
    copy(stream, bucket, network_.weights(bucket.layers), bucket.gathered, false);
    bucket.current = true;
  }
}

Array ShardedWeights::tied_gradient(int layer) const {
  for (const auto& [first, bucket] : buckets_)
    for (const Run& run : bucket.runs)
      if (run.tied && layer >= bucket.layers.first && layer <= bucket.layers.last)
        return bucket.gradients->part(run.at, run.each);
  throw RunError(fmt::format("layer {} has no shards of a table in common with another", layer));
}

Array ShardedWeights::gradients(const Op& op) const {
  return buckets_.at(op.first_layer).gradients;
}

void ShardedWeights::update(int stream) {
  for (auto& [layer, bucket] : buckets_) {
    bucket.optimizer->apply(stream, bucket.gradients);
    bucket.summed = bucket.current = false;
  }
}

}  // namespace rehearse
