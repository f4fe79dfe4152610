#include "backend/training/tensor_layout.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "models/text/error.hpp"

namespace rehearse {

std::size_t TensorLayout::elements() const {
  return static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), 1L, std::multiplies<>()));
}

int TensorLayout::find(Dim dim) const {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool of_rows = dims[i] == Dim::routed && (dim == Dim::batch || dim == Dim::sequence);
    if (dims[i] == dim || of_rows) return static_cast<int>(i);
  }
  return -1;
}

DimCut cut_along(const TensorLayout& whole, Dim dim, int parts) {
  const int found = whole.find(dim);
  if (found < 0)
    throw std::invalid_argument(fmt::format("a tensor without dimension {} is cut along it",
                                            kDimNames[static_cast<std::size_t>(dim)]));
  const auto at = static_cast<std::size_t>(found);
  DimCut result;
  for (std::size_t i = 0; i < at; ++i) result.rows *= whole.sizes[i];
  for (std::size_t i = at; i < whole.sizes.size(); ++i) result.stride *= whole.sizes[i];
  result.width = result.stride / parts;
  return result;
}

TensorLayout whole_layout(const Value& value, const DimSizes& sizes) {
  using enum Dim;
  TensorLayout layout;
  for (const Dim dim :
       {experts, routed, batch, sequence, kv_heads, queries, head, latent, inner, vocabulary, hidden})
    if (value.dims.has(dim) && dim == routed && sizes.room_for_all)
      layout.dims.insert(layout.dims.end(), {batch, sequence});
    else if (value.dims.has(dim))
      layout.dims.push_back(dim);
  // The router's gates are rows per token.
  if (value.dims.has(experts) && value.dims.has(batch)) layout.dims = {batch, sequence, experts};
  long others = 1;
  for (std::size_t i = 0; i + 1 < layout.dims.size(); ++i) {
    const auto size = [&]() -> long {
      switch (layout.dims[i]) {
        case batch:
          return sizes.batch;
        case sequence:
          return sizes.sequence;
        case kv_heads:
          return sizes.kv_heads;
        case queries:
          return sizes.queries;
        case experts:
          return sizes.experts;
        case routed:
          return sizes.routed;
        default:
          throw std::invalid_argument("a tensor with two dimensions of unknown size");
      }
    };
    layout.sizes.push_back(size());
    others *= layout.sizes.back();
  }
  layout.sizes.push_back(std::lround(value.elements / static_cast<double>(others)));
  return layout;
}

Shards::Shards(std::vector<Factor> factors, std::vector<int> coordinates)
    : factors_(std::move(factors)), coordinates_(std::move(coordinates)) {
  if (!factors_.empty()) return;
  // Adds a factor of one rank, along which nothing is split.
  factors_.push_back({"data", 1, 1, AxisTable(), false});
  coordinates_ = {0};
}

TensorLayout Shards::local(TensorLayout whole, const Placements& placements) const {
  for (std::size_t f = 0; f < placements.size(); ++f) {
    if (placements[f].kind != Placement::Kind::sharded) continue;
    const int at = whole.find(placements[f].dim);
    long& size = whole.sizes.at(static_cast<std::size_t>(at));
    if (size % factors_[f].size != 0)
      throw RunError(fmt::format(
          "{} elements along dimension {} would be split over {} ranks of axis {}; allowed in real training: "
          "a multiple of the ranks",
          size, kDimNames[static_cast<std::size_t>(placements[f].dim)], factors_[f].size, factors_[f].axis));
    size /= factors_[f].size;
  }
  return whole;
}

Part Shards::part(SegmentKind kind, Dim dim) const {
  Part part;
  for (std::size_t f = 0; f < factors_.size(); ++f) {
    const Split& split = factors_[f].table.of(kind);
    if (split.kind != Split::Kind::by || split.dim != dim) continue;
    part.number = part.number * factors_[f].size + coordinates_[f];
    part.of *= factors_[f].size;
  }
  return part;
}

Part Shards::part(const Placements& placements, Dim dim) const {
  Part part;
  for (std::size_t f = 0; f < factors_.size(); ++f) {
    if (!(placements[f] == Placement{Placement::Kind::sharded, dim})) continue;
    part.number = part.number * factors_[f].size + coordinates_[f];
    part.of *= factors_[f].size;
  }
  return part;
}

int Shards::members(const Change& change) const {
  int members = 1;
  for (const int factor : change.factors) members *= factors_[static_cast<std::size_t>(factor)].size;
  return members;
}

int Shards::number(const Change& change, const std::vector<int>& coordinates) const {
  int number = 0;
  for (const int factor : change.factors)
    number = number * factors_[static_cast<std::size_t>(factor)].size +
             coordinates[static_cast<std::size_t>(factor)];
  return number;
}

Placements after(Placements placements, const Change& change, const Placements& to) {
  for (const int factor : change.factors)
    placements[static_cast<std::size_t>(factor)] = to[static_cast<std::size_t>(factor)];
  return placements;
}

}  // namespace rehearse
