#include "backend/training/layer_shard.hpp"

#include <algorithm>
#include <cstddef>

#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {

std::vector<At> place_of(const Mesh& workers, int rank) {
  std::vector<At> place;
  for (int axis = 0; axis < static_cast<int>(workers.axes().size()); ++axis)
    place.push_back({axis, workers.coordinate(rank, axis)});
  return place;
}

std::vector<int> factor_coordinates(const Scenario& scenario, const Mesh& workers,
                                    const std::vector<At>& where) {
  std::vector<int> coordinates;
  for (const Factor& factor : factors_of(scenario)) {
    const int axis = workers.axis(std::string(factor.axis));
    const auto at = std::find_if(where.begin(), where.end(), [&](const At& a) { return a.axis == axis; });
    coordinates.push_back(at == where.end() ? 0 : at->coordinate / factor.stride % factor.size);
  }
  return coordinates;
}

std::vector<LayerShard> layer_shards(const Scenario& scenario, const std::vector<int>& coordinates) {
  using enum Dim;
  const std::vector<Factor> factors = factors_of(scenario);
  const auto part_of = [&](SegmentKind kind, Dim dim) {
    Part part;
    for (std::size_t f = 0; f < factors.size(); ++f) {
      const Split& split = factors[f].table.of(kind);
      if (split.kind != Split::Kind::by || split.dim != dim) continue;
      part.number = part.number * factors[f].size + coordinates[f];
      part.of *= factors[f].size;
    }
    return part;
  };
  const std::vector<Layer> layers = model_layers(scenario.model, pass_shape(scenario));
  std::vector<LayerShard> shards;
  for (const Layer& layer : layers) {
    const Segment& product = layer.segments.front();
    const bool down = product.kind == SegmentKind::down, logits = product.kind == SegmentKind::logits;
    const Segment& bias = down ? layer.segments[1] : product;
    const auto sums = [&](const Segment& segment) {
      return std::any_of(factors.begin(), factors.end(), [&](const Factor& factor) {
        return parameter_use(layer, segment, factor.table).gradient.kind == Placement::Kind::partial;
      });
    };
    LayerShard& shard = shards.emplace_back();
    shard.samples = part_of(product.kind, sequence);
    shard.results = part_of(bias.kind, sequence);
    if (down) shard.inputs = part_of(product.kind, inner);
    if (product.kind == SegmentKind::up || logits)
      shard.outputs = part_of(product.kind, logits ? vocabulary : inner);
    shard.sums_matrix = sums(product);
    shard.sums_bias = sums(bias);
  }
  return shards;
}

}  // namespace rehearse
