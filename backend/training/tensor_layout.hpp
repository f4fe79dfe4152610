// Memory layouts of a transformer's tensors: of whole tensors, and of the shards that ranks hold.
#pragma once

#include <vector>

#include "backend/training/layer_shard.hpp"
#include "models/segment.hpp"
#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {

// Row-major, with named dimensions.
struct TensorLayout {
  std::vector<Dim> dims;
  std::vector<long> sizes;

  std::size_t elements() const;
  // The index in `dims` of the dimension that sharding along `dim` splits, or -1. Sharding along batch or
  // sequence splits routed rows.
  int find(Dim dim) const;
};

// Equal parts along one dimension: `rows` pieces of `width` elements each, `stride` apart in the whole.
struct DimCut {
  long rows = 1, width = 1, stride = 1;
};
DimCut cut_along(const TensorLayout& whole, Dim dim, int parts);

// Sizes of dimensions that several tensors of a model have; of the last dimension of each, its elements tell.
struct DimSizes {
  long batch = 1, sequence = 1, kv_heads = 1, queries = 1, experts = 1, routed = 1;
  // Each expert has room for every token (strategy.capacity_factor = experts / experts_per_token): routed
  // rows are [experts, batch, sequence], and ranks exchange as many of them whatever the router chooses.
  bool room_for_all = false;
};
TensorLayout whole_layout(const Value& value, const DimSizes& sizes);

// A rank's place on the factors of the axes that share out layers.
class Shards {
public:
  // No factors: the rank is alone.
  Shards(std::vector<Factor> factors, std::vector<int> coordinates);

  const std::vector<Factor>& factors() const { return factors_; }
  const std::vector<int>& coordinates() const { return coordinates_; }
  // The layout of this rank's shard. RunError if a dimension does not divide evenly.
  TensorLayout local(TensorLayout whole, const Placements& placements) const;
  // The rank's share of the work of a segment along a dimension.
  Part part(SegmentKind kind, Dim dim) const;
  Part part(const Placements& placements, Dim dim) const;
  // Of a change: its members, and the number of the shard of the one at these coordinates.
  int members(const Change& change) const;
  int number(const Change& change, const std::vector<int>& coordinates) const;

private:
  std::vector<Factor> factors_;
  std::vector<int> coordinates_;
};

// Placements on all factors after a change towards `to`.
Placements after(Placements placements, const Change& change, const Placements& to);

}  // namespace rehearse
