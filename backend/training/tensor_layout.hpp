// Computes memory layouts of a transformer's tensors, for complete tensors and for the shards that ranks
// hold.
#pragma once

#include <vector>

#include "backend/training/layer_shard.hpp"
#include "models/segment.hpp"
#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {

// A row-major layout with named dimensions.
struct TensorLayout {
  std::vector<Dim> dims;
  std::vector<long> sizes;

  std::size_t elements() const;
  // The index in `dims` of the dimension that sharding along `dim` splits, or -1. Sharding along batch or
  // sequence splits routed rows.
  int find(Dim dim) const;
};

// Equal parts along one dimension: a part has `rows` pieces of `width` elements, `stride` apart in the
// complete tensor.
struct DimCut {
  long rows = 1, width = 1, stride = 1;
};
DimCut cut_along(const TensorLayout& whole, Dim dim, int parts);

// Sizes of the dimensions that several tensors of a model have. The size of a tensor's last dimension follows
// from its number of elements.
struct DimSizes {
  long batch = 1, sequence = 1, kv_heads = 1, queries = 1, experts = 1, routed = 1;
  // Each expert has room for every token (strategy.capacity_factor = experts / experts_per_token): routed
  // rows are [experts, batch, sequence], and ranks exchange the same number of rows whatever the router
  // chooses.
  bool room_for_all = false;
};
TensorLayout whole_layout(const Value& value, const DimSizes& sizes);

// A rank's coordinates on the factors of the mesh axes that shard layers.
class Shards {
public:
  // Without factors, the rank is alone.
  Shards(std::vector<Factor> factors, std::vector<int> coordinates);

  const std::vector<Factor>& factors() const { return factors_; }
  const std::vector<int>& coordinates() const { return coordinates_; }
  // Returns the layout of this rank's shard. Throws RunError if a dimension does not divide evenly.
  TensorLayout local(TensorLayout whole, const Placements& placements) const;
  // Returns the rank's share of the work along a dimension: of a segment, or of a tensor with these
  // placements.
  Part part(SegmentKind kind, Dim dim) const;
  Part part(const Placements& placements, Dim dim) const;
  // Return the number of members of a change, and the index of the shard of the member at these coordinates.
  int members(const Change& change) const;
  int number(const Change& change, const std::vector<int>& coordinates) const;

private:
  std::vector<Factor> factors_;
  std::vector<int> coordinates_;
};

// Returns the placements on all factors after a change towards `to`.
Placements after(Placements placements, const Change& change, const Placements& to);

}  // namespace rehearse
