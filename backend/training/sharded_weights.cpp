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
    if (op.action.kind != Action::Kind::scatter_gradients ||
        buckets_.count({op.first_layer, op.action.part}) > 0)
      continue;
    const std::vector<int> members = group_members(workers, op.collective.group, rank);
    add({op.first_layer, op.last_layer}, op.action.part,
        {static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin()),
         static_cast<int>(members.size())},
        optimizer);
  }
  std::vector<LayerRange> shared;
  for (const auto& [key, bucket] : buckets_) shared.push_back(bucket.layers);
  for (const LayerRange& layers : shared)
    if (buckets_.count({layers.first, 1}) == 0 && !network.runs(layers, 1).empty())
      add(layers, 1, {0, 1}, optimizer);
  arithmetic.settle(0);
}

void ShardedWeights::add(LayerRange layers, int number, const Part& part,
                         const OptimizerSettings& optimizer) {
  Bucket bucket;
  bucket.layers = layers;
  bucket.contents = network_.runs(layers, number);
  bucket.part = part;
  bucket.alone = part.of == 1;
  bucket.runs = runs_of(layers, bucket.contents, part.of);
  const Run& last = bucket.runs.back();
  const std::size_t each = last.at + last.each, all = each * static_cast<std::size_t>(part.of);
  bucket.scattered = OwnedArray(arithmetic_, all, Precision::fp32);
  bucket.gathered = OwnedArray(arithmetic_, all, Precision::fp32);
  bucket.gradients = OwnedArray(arithmetic_, each, Precision::fp32);
  copy(0, bucket, network_.weights(layers), bucket.gathered, true);
  std::vector<float> initial(all);
  arithmetic_.copy_to_host(0, bucket.gathered, initial.data());
  const auto own = initial.begin() + static_cast<std::ptrdiff_t>(each) * part.number;
  bucket.optimizer = std::make_unique<ShardOptimizer>(
      arithmetic_, 0, std::vector<float>(own, own + static_cast<std::ptrdiff_t>(each)), optimizer);
  buckets_.emplace(std::pair<int, int>{layers.first, number}, std::move(bucket));
}

// Divides a tied table at the beginning or the end of its bucket separately, so that its shards are the same
// on both stages that store it.
std::vector<ShardedWeights::Run> ShardedWeights::runs_of(LayerRange layers,
                                                         const std::vector<WeightRun>& contents,
                                                         int parts) const {
  const auto n = static_cast<std::size_t>(parts);
  const std::size_t all = elements_of(contents);
  const Run whole{0, all, 0, (all + n - 1) / n, false};
  const Array gradients = network_.gradients(layers);
  Array table;
  for (int layer = layers.first; layer <= layers.last && table.elements == 0; ++layer)
    table = network_.tied_gradient(layer);
  const auto at = table.elements == 0
                      ? std::size_t{0}
                      : static_cast<std::size_t>(table.data - gradients.data) / gradients.element_size();
  const bool here = std::any_of(contents.begin(), contents.end(), [&](const WeightRun& run) {
    return at >= run.first && at < run.first + run.count;
  });
  if (table.elements == 0 || !here || table.elements % n != 0 || table.elements == all) {
    Run only = whole;
    only.tied = here && table.elements > 0 && table.elements == all;
    return {only};
  }
  const std::size_t rest = all - table.elements, first = at == 0 ? 0 : rest, each = table.elements / n;
  return {{first, table.elements, 0, each, true},
          {first == 0 ? table.elements : 0, rest, each, (rest + n - 1) / n, false}};
}

// Copies from weights or gradients, stored layer after layer, to the parts of all ranks, one after the other,
// or back.
void ShardedWeights::copy(int stream, const Bucket& bucket, const Array& layers, const Array& parts,
                          bool to_parts) const {
  const auto n = static_cast<std::size_t>(bucket.part.of);
  const std::size_t of_rank = parts.elements / n;
  for (const Run& run : bucket.runs)
    for (std::size_t r = 0; r < n; ++r) {
      const std::size_t first = std::min(r * run.each, run.elements),
                        count = std::min(run.each, run.elements - first);
      if (count == 0) continue;
      copy_runs(arithmetic_, stream, bucket.contents, run.first + first, layers,
                parts.part(r * of_rank + run.at, count), to_parts);
    }
}

Array ShardedWeights::own_part(const Bucket& bucket, const Array& all) {
  const std::size_t each = bucket.gradients->elements;
  return all.part(static_cast<std::size_t>(bucket.part.number) * each, each);
}

// Must be called while the network still has the gradients of a pass, that is, before those of the bucket are
// scattered.
void ShardedWeights::add_alone(int stream, Bucket& bucket) {
  const Array& pass = bucket.summed ? bucket.scattered : bucket.gradients;
  copy(stream, bucket, network_.gradients(bucket.layers), pass, true);
  if (bucket.summed) arithmetic_.add(stream, pass, bucket.gradients);
  bucket.summed = true;
}

Array ShardedWeights::begin(int stream, const Op& op) {
  const Bucket& bucket = buckets_.at({op.first_layer, op.action.part});
  if (op.action.kind == Action::Kind::scatter_gradients) {
    if (const auto other = buckets_.find({op.first_layer, 1}); other != buckets_.end() && other->second.alone)
      add_alone(stream, other->second);
    copy(stream, bucket, network_.gradients(bucket.layers), bucket.scattered, true);
    return bucket.scattered;
  }
  arithmetic_.copy(stream, bucket.optimizer->weights(), own_part(bucket, bucket.gathered));
  return bucket.gathered;
}

void ShardedWeights::end(int stream, const Op& op) {
  Bucket& bucket = buckets_.at({op.first_layer, op.action.part});
  if (op.action.kind == Action::Kind::scatter_gradients) {
    const Array own = own_part(bucket, bucket.scattered);
    if (bucket.summed)
      arithmetic_.add(stream, own, bucket.gradients);
    else
      arithmetic_.copy(stream, own, bucket.gradients);
    bucket.summed = true;
  } else if (!bucket.current) {  // else a pass may be reading the weights
    copy(stream, bucket, network_.weights(bucket.layers), bucket.gathered, false);
    bucket.current = true;
  }
}

Array ShardedWeights::tied_gradient(int layer) const {
  for (const auto& [key, bucket] : buckets_)
    for (const Run& run : bucket.runs)
      if (run.tied && layer >= bucket.layers.first && layer <= bucket.layers.last)
        return bucket.gradients->part(run.at, run.each);
  throw RunError(fmt::format("layer {} has no shards of a table in common with another", layer));
}

Array ShardedWeights::gradients(const Op& op) const {
  return buckets_.at({op.first_layer, op.action.part}).gradients;
}

void ShardedWeights::update(int stream) {
  for (auto& [key, bucket] : buckets_) {
    bucket.optimizer->apply(stream, bucket.gradients);
    if (bucket.alone)
      copy(stream, bucket, network_.weights(bucket.layers), bucket.optimizer->weights(), false);
    bucket.summed = bucket.current = false;
  }
}

std::vector<HeldState> ShardedWeights::state(const std::string& place,
                                             const std::string& place_of_experts) const {
  std::vector<HeldState> all;
  for (const auto& [key, bucket] : buckets_) {
    const ShardOptimizer& optimizer = *bucket.optimizer;
    const std::string& its_place = key.second == 1 ? place_of_experts : place;
    for (const Run& run : bucket.runs) {
      const std::size_t first =
                            std::min(static_cast<std::size_t>(bucket.part.number) * run.each, run.elements),
                        count = std::min(run.each, run.elements - first);
      for (const LayerPiece& piece : pieces_of(bucket, run.first + first, count)) {
        const auto add = [&](StateKind kind, const Array& whole) {
          if (whole.elements == 0) return;
          all.push_back({{kind, piece.layer, its_place, piece.first, piece.count,
                          network_.weights({piece.layer, piece.layer}).elements},
                         whole.part(run.at + piece.at, piece.count)});
        };
        add(StateKind::weights, optimizer.master_weights());
        add(StateKind::momentum, optimizer.momentum());
        add(StateKind::second_moment, optimizer.second_moment());
      }
    }
  }
  return all;
}

// Divides elements [begin, begin + count) of the bucket by the layers that they belong to.
std::vector<ShardedWeights::LayerPiece> ShardedWeights::pieces_of(const Bucket& bucket, std::size_t begin,
                                                                  std::size_t count) const {
  std::vector<LayerPiece> pieces;
  std::size_t before = 0;  // contents before the current run of them
  for (const WeightRun& content : bucket.contents) {
    const std::size_t from = std::max(begin, before), to = std::min(begin + count, before + content.count);
    std::size_t layer_begin = 0;
    for (int layer = bucket.layers.first; from < to && layer <= bucket.layers.last; ++layer) {
      const std::size_t elements = network_.weights({layer, layer}).elements;
      const std::size_t flat = content.first + (from - before), end = content.first + (to - before);
      const std::size_t first = std::max(flat, layer_begin), last = std::min(end, layer_begin + elements);
      if (first < last)
        pieces.push_back({layer, first - layer_begin, last - first, from - begin + (first - flat)});
      layer_begin += elements;
    }
    before += content.count;
  }
  return pieces;
}

void ShardedWeights::set_steps(long steps) {
  for (auto& [key, bucket] : buckets_) bucket.optimizer->set_steps(steps);
}

}  // namespace rehearse
