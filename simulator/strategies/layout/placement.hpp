// How tensors lie on the ranks of parallel axes, and what it takes to lay them out anew.
//
// PyTorch's DTensor and GSPMD place tensors alike. An axis says of each kind of segment by which dimension it
// splits the work; the placements of inputs, weights and outputs follow from the dimensions that they have.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "models/segment.hpp"

namespace rehearse {

// On one factor of the mesh: every rank has the whole, a shard along `dim`, or a summand (of a maximum, the
// largest counts).
struct Placement {
  enum class Kind { replicated, sharded, partial } kind = Kind::replicated;
  Dim dim = Dim::batch;
  bool operator==(const Placement& other) const {
    return kind == other.kind && (kind != Kind::sharded || dim == other.dim);
  }
};
using Placements = std::vector<Placement>;  // by factor, the outermost first

// What an axis does with the work of a segment.
struct Split {
  enum class Kind {
    duplicate,  // every rank does all of it
    by,         // each rank does the share along `dim`
    shared,     // every rank does all of it for a share of what follows: gradients are summands
    through,    // on summands, since it is linear in its first input
  } kind = Kind::duplicate;
  Dim dim = Dim::batch;
};

// A row for each kind of segment, and what holds for all others.
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

// How a segment uses a tensor on one factor: as what it reads or makes it, and as what the tensor's gradient
// is made or read.
struct Use {
  Placement as, gradient;
};
// `input`: which of the segment's inputs. A dimension that none of the segment's tensors has splits nothing.
Use input_use(const Layer& layer, const Segment& segment, int input, const AxisTable& table);
Use output_use(const Layer& layer, const Segment& segment, int output, const AxisTable& table);
Use parameter_use(const Layer& layer, const Segment& segment, const AxisTable& table);

// What carries a tensor from one placement to another on some factors, all of one kind.
struct Change {
  // Slices and summands of which one rank keeps the whole cost nothing.
  enum class Kind {
    all_reduce,
    reduce_scatter,
    all_gather,
    all_to_all,
    slice,
    keep_one
  } kind = Kind::all_reduce;
  std::vector<int> factors;  // ascending
  double elements = 0;       // of the tensor on one rank, as if it were replicated on these factors
  Dim dim = Dim::batch;      // along which it is gathered, scattered or cut
  bool operator==(const Change&) const = default;
};
constexpr bool costs_nothing(Change::Kind kind) {
  return kind == Change::Kind::slice || kind == Change::Kind::keep_one;
}

// The changes from one placement to another, in the order with the least bytes: shards along one dimension
// are left and formed from the innermost factor on. `elements`: of the whole tensor. std::invalid_argument if
// there is no such order, or if a shard would become a summand.
std::vector<Change> changes(const Placements& from, const Placements& to,
                            const std::vector<int>& factor_sizes, double elements);

}  // namespace rehearse
