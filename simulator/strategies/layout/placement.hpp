// Describes placements of tensors on the ranks of parallel axes, and the collectives that change them.
//
// The model is that of PyTorch's DTensor and of GSPMD. For each kind of segment, an axis names the dimension
// by which it splits the work; the placements of inputs, weights and outputs follow from their dimensions.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "models/segment.hpp"

namespace rehearse {

// A placement on one factor of the mesh: every rank holds the complete tensor, a shard along `dim`, or one
// term of a reduction (a sum or a maximum).
struct Placement {
  enum class Kind { replicated, sharded, partial } kind = Kind::replicated;
  Dim dim = Dim::batch;
  bool operator==(const Placement& other) const {
    return kind == other.kind && (kind != Kind::sharded || dim == other.dim);
  }
};
using Placements = std::vector<Placement>;  // by factor, the outermost first

// How an axis divides the work of a segment.
struct Split {
  enum class Kind {
    duplicate,  // every rank does all of it
    by,         // each rank does its share along `dim`
    shared,     // every rank does all of it for a share of the following work: its gradients are partial sums
    through,    // operates on partial sums, because it is linear in its first input
  } kind = Kind::duplicate;
  Dim dim = Dim::batch;
};
constexpr Split by(Dim dim) {
  return {Split::Kind::by, dim};
}

// One Split for each kind of segment; kinds that are not set have the default.
class AxisTable {
public:
  explicit AxisTable(Split otherwise = {}) { rows_.fill(otherwise); }
  AxisTable& rows(std::initializer_list<SegmentKind> kinds, Split split) {
    for (const SegmentKind kind : kinds) rows_[static_cast<std::size_t>(kind)] = split;
    return *this;
  }
  const Split& of(SegmentKind kind) const { return rows_[static_cast<std::size_t>(kind)]; }

private:
  std::array<Split, kSegmentKinds> rows_;
};

// The placement on one factor in which a segment reads or writes a tensor, and the placement in which it
// writes or reads the tensor's gradient.
struct Use {
  Placement as, gradient;
};
// `input`: the index of one of the segment's inputs. A split along a dimension that none of the segment's
// tensors has does not split the segment.
Use input_use(const Layer& layer, const Segment& segment, int input, const AxisTable& table);
Use output_use(const Layer& layer, const Segment& segment, int output, const AxisTable& table);
Use parameter_use(const Layer& layer, const Segment& segment, const AxisTable& table);

// One step that brings a tensor from one placement to another, on one or more factors.
struct Change {
  // `slice` and `keep_one` (one rank keeps its term, the others drop theirs) cost nothing.
  enum class Kind {
    all_reduce,
    reduce_scatter,
    all_gather,
    all_to_all,
    slice,
    keep_one
  } kind = Kind::all_reduce;
  std::vector<int> factors;  // ascending
  double elements = 0;       // of the tensor on one rank, if it were replicated on these factors
  Dim dim = Dim::batch;      // the dimension along which it is gathered, scattered or sliced
  bool operator==(const Change&) const = default;
};
inline constexpr std::array<std::string_view, 6> kChangeNames = {"all-reduce", "reduce-scatter", "all-gather",
                                                                 "all-to-all", "slice",          "keep one"};
constexpr bool costs_nothing(Change::Kind kind) {
  return kind == Change::Kind::slice || kind == Change::Kind::keep_one;
}

// Returns the changes from one placement to another, in the order that moves the fewest bytes. Shards along
// one dimension are gathered and formed from the innermost factor outwards, unless the tensor's elements can
// be in any order. `elements`: of the complete tensor. Throws std::invalid_argument if no order exists, or if
// a shard would have to become a term of a reduction.
std::vector<Change> changes(const Placements& from, const Placements& to,
                            const std::vector<int>& factor_sizes, double elements, bool in_any_order = false);

}  // namespace rehearse
