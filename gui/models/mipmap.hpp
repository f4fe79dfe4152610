// What rows do in pieces of time, so that any zoom is painted from few of them: in buckets of powers of two.
#pragma once

#include <atomic>
#include <bitset>
#include <memory>

#include "gui/models/time_scale.hpp"

namespace rehearse::gui {

// What looks alike: kind and, of computation, pass in one number.
using Style = std::uint8_t;
inline constexpr int kStyles = 15;
constexpr Style style_of(Kind kind, Pass pass) {
  return kind == Kind::compute ? static_cast<Style>(pass) : static_cast<Style>(static_cast<int>(kind) + 5);
}
constexpr Kind kind_of(Style style) {
  return style < 6 ? Kind::compute : static_cast<Kind>(style - 5);
}
constexpr Pass pass_of(Style style) {
  return style < 6 ? static_cast<Pass>(style) : Pass::none;
}

// In legends: computing first.
inline constexpr std::array<Style, kStyles> kStylesInOrder = {1, 4, 2,  5,  3,  0,  6, 7,
                                                              8, 9, 10, 11, 12, 13, 14};

// A piece of a row's time: the style that fills most of what is filled.
struct Bucket {
  std::uint8_t style : 7 = 0;
  std::uint8_t critical : 1 = 0;  // something in it is on the critical path
  std::uint8_t busy = 0;          // share that is filled, of 255; 0: nothing lies in it
};

// One row's buckets, level above level, each twice as long as those below it.
class RowMipmap {
public:
  RowMipmap() = default;
  RowMipmap(const Timeline& timeline, const Row& row);
  bool empty() const { return levels_.empty(); }
  Time shortest() const { return Time{1} << shift_; }  // bucket of the lowest level
  // Of [begin, end), from the level whose buckets are no longer than that; `end - begin` is at least
  // shortest().
  Bucket at(Time begin, Time end) const;
  std::size_t buckets() const;

private:
  Time origin_ = 0;
  int shift_ = 0;
  std::vector<std::vector<Bucket>> levels_;
};

// The critical path as a timeline of one row: each instant once, gaps where nothing is known.
struct PathRow {
  Timeline timeline;
  RowMipmap mipmap;
  std::vector<SpanId> spans;  // of the run's timeline, by those of the row
};

// Of all rows of a timeline that are long enough to need one.
struct Mipmaps {
  std::vector<RowMipmap> rows;   // by row; empty: paint from the spans
  std::bitset<kStyles> styles;   // that occur, in rows that are no summary
  std::vector<SpanId> critical;  // spans on the critical path, by begin
  PathRow path;                  // empty: not known
  std::vector<double> greatest;  // value of each counter
};
// Null if cancelled.
std::shared_ptr<const Mipmaps> make_mipmaps(const Timeline& timeline, const std::atomic<bool>& cancelled);

// What a row shows at a scale, from left to right.
struct Piece {
  double left = 0, right = 0;
  Style style = 0;
  bool critical = false;
  float busy = 1;         // share that is filled
  SpanId span = kNoSpan;  // wide enough to be seen alone; kNoSpan: a pixel of several
};
// Narrower spans share a pixel.
inline constexpr double kAloneWidth = 2;
// `scale` in the timeline's time, its `left` a whole pixel. Without a mipmap, or where it is too coarse, many
// spans a pixel are sampled by binary search.
void pieces_of(const Timeline& timeline, const Row& row, const RowMipmap* mipmap, const TimeScale& scale,
               std::vector<Piece>& pieces);

}  // namespace rehearse::gui
