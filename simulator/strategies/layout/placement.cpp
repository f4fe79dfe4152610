#include "simulator/strategies/layout/placement.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace rehearse {
namespace {

using Kind = Placement::Kind;

// Routed rows contain the batch and the sequence they come from.
bool contains(Dims dims, Dim dim) {
  const bool of_rows = dim == Dim::batch || dim == Dim::sequence;
  return dims.has(dim) || (of_rows && dims.has(Dim::routed));
}

Split split_of(const Layer& layer, const Segment& segment, const AxisTable& table) {
  const Split split = table.of(segment.kind);
  if (split.kind != Split::Kind::by) return split;
  bool any = contains(parameter_dims(segment.kind), split.dim);
  for (std::size_t i = 0; i < segment.inputs.size(); ++i)
    any = any || contains(input_dims(segment.kind, static_cast<int>(i), layer.values[segment.inputs[i]].dims),
                          split.dim);
  for (const int output : segment.outputs) any = any || contains(layer.values[output].dims, split.dim);
  return any ? split : Split{};
}

constexpr Placement kReplicated{};
constexpr Placement kPartial{Kind::partial};

Use read_use(Dims dims, const Split& split) {
  switch (split.kind) {
    case Split::Kind::duplicate:
      return {kReplicated, kReplicated};
    case Split::Kind::by:
      if (contains(dims, split.dim)) return {{Kind::sharded, split.dim}, {Kind::sharded, split.dim}};
      return {kReplicated, kPartial};
    case Split::Kind::shared:
    case Split::Kind::through:
      return {kReplicated, kPartial};
  }
  return {};
}

// The kind of change between two placements on one factor; empty if they are equal.
std::optional<Change::Kind> change_kind(const Placement& from, const Placement& to) {
  if (from == to) return {};
  switch (from.kind) {
    case Kind::replicated:
      return to.kind == Kind::sharded ? Change::Kind::slice : Change::Kind::keep_one;
    case Kind::sharded:
      if (to.kind == Kind::partial)
        throw std::invalid_argument("a sharded tensor cannot become a partial sum");
      return to.kind == Kind::sharded ? Change::Kind::all_to_all : Change::Kind::all_gather;
    case Kind::partial:
      return to.kind == Kind::sharded ? Change::Kind::reduce_scatter : Change::Kind::all_reduce;
  }
  return {};
}

// Heads and experts are computed one by one: it does not matter which rank has which of them, as long as each
// rank gets the same ones every time.
bool unordered(Dim dim) {
  return dim == Dim::kv_heads || dim == Dim::queries || dim == Dim::experts;
}

// Returns whether two all-to-alls can be merged into one over the product of their factors. Routed rows go to
// any rank of their experts in one all-to-all, no matter which dimension of their tokens a factor splits.
bool same_exchange(const Placement& from_a, const Placement& to_a, const Placement& from_b,
                   const Placement& to_b, bool in_any_order) {
  const bool same_from = from_a.dim == from_b.dim, same_to = to_a.dim == to_b.dim;
  return in_any_order ? same_from || same_to : same_from && same_to;
}

// Returns whether no factor further inside holds a shard of the same dimension.
bool innermost(const Placements& placements, std::size_t factor, Dim dim) {
  if (unordered(dim)) return true;
  for (std::size_t f = factor + 1; f < placements.size(); ++f)
    if (placements[f] == Placement{Kind::sharded, dim}) return false;
  return true;
}

// Returns the elements that one rank sends for a change.
double sent(Change::Kind kind, double elements, double n) {
  switch (kind) {
    case Change::Kind::all_reduce:
      return 2 * (n - 1) / n * elements;
    case Change::Kind::reduce_scatter:
    case Change::Kind::all_gather:
      return (n - 1) / n * elements;
    case Change::Kind::all_to_all:
      return (n - 1) / n * elements / n;
    case Change::Kind::slice:
    case Change::Kind::keep_one:
      return 0;
  }
  return 0;
}

}  // namespace

Use input_use(const Layer& layer, const Segment& segment, int input, const AxisTable& table) {
  const Split split = split_of(layer, segment, table);
  if (split.kind == Split::Kind::through && input == 0) return {kPartial, kReplicated};
  const Dims value = layer.values[segment.inputs[static_cast<std::size_t>(input)]].dims;
  return read_use(input_dims(segment.kind, input, value), split);
}

Use parameter_use(const Layer& layer, const Segment& segment, const AxisTable& table) {
  return read_use(parameter_dims(segment.kind), split_of(layer, segment, table));
}

Use output_use(const Layer& layer, const Segment& segment, int output, const AxisTable& table) {
  const Split split = split_of(layer, segment, table);
  const Dims dims = layer.values[segment.outputs[static_cast<std::size_t>(output)]].dims;
  switch (split.kind) {
    case Split::Kind::duplicate:
      return {kReplicated, kReplicated};
    case Split::Kind::by:
      if (contains(dims, split.dim)) return {{Kind::sharded, split.dim}, {Kind::sharded, split.dim}};
      return {kPartial, kReplicated};
    case Split::Kind::shared:
      return {kReplicated, kPartial};
    case Split::Kind::through:
      return {kPartial, kReplicated};
  }
  return {};
}

std::vector<Change> changes(const Placements& from, const Placements& to,
                            const std::vector<int>& factor_sizes, double elements, bool in_any_order) {
  std::vector<int> differing;
  for (std::size_t f = 0; f < from.size(); ++f)
    if (!(from[f] == to[f])) differing.push_back(static_cast<int>(f));
  std::vector<Change> best;
  double least = std::numeric_limits<double>::infinity();
  do {
    Placements now = from;
    std::vector<Change> order;
    double wire = 0;
    bool legal = true;
    for (const int f : differing) {
      const auto factor = static_cast<std::size_t>(f);
      const Change::Kind kind = *change_kind(from[factor], to[factor]);
      legal = legal && (in_any_order ||
                        ((from[factor].kind != Kind::sharded || innermost(now, factor, from[factor].dim)) &&
                         (to[factor].kind != Kind::sharded || innermost(now, factor, to[factor].dim))));
      double local = elements;
      for (std::size_t other = 0; other < now.size(); ++other)
        if (other != factor && now[other].kind == Kind::sharded) local /= factor_sizes[other];
      wire += sent(kind, local, factor_sizes[factor]);
      const Dim dim = to[factor].kind == Kind::sharded ? to[factor].dim : from[factor].dim;
      const auto last = order.empty() ? factor : static_cast<std::size_t>(order.back().factors.front());
      const bool exchanged = kind == Change::Kind::all_to_all;
      if (!order.empty() && order.back().kind == kind &&
          (exchanged ? same_exchange(from[last], to[last], from[factor], to[factor], in_any_order)
                     : order.back().dim == dim)) {
        // Adjacent changes of the same kind are merged into one over the product of their factors.
        order.back().factors.push_back(f);
        order.back().elements =
            exchanged ? order.back().elements * factor_sizes[factor] : std::max(order.back().elements, local);
        std::sort(order.back().factors.begin(), order.back().factors.end());
      } else {
        order.push_back({kind, {f}, local, dim});
      }
      now[factor] = to[factor];
    }
    if (legal && wire < least * (1 - 1e-12)) {
      least = wire;
      best = std::move(order);
    }
  } while (std::next_permutation(differing.begin(), differing.end()));
  if (!differing.empty() && least == std::numeric_limits<double>::infinity())
    throw std::invalid_argument("shards of one dimension are in an order that no change can undo");
  return best;
}

}  // namespace rehearse
