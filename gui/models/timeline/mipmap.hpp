// Summarizes rows in buckets whose lengths are powers of two, so that painting at any zoom reads only a few.
#pragma once

#include <atomic>
#include <bitset>
#include <memory>

#include "gui/models/timeline/time_scale.hpp"

namespace rehearse::gui {

// Spans of one style look identical. Encodes the kind and, for compute, the pass in one number.
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

// The order in legends: compute first.
inline constexpr std::array<Style, kStyles> kStylesInOrder = {1, 4, 2,  5,  3,  0,  6, 7,
                                                              8, 9, 10, 11, 12, 13, 14};

// A time interval of a row, with the style that takes up most of its filled time.
struct Bucket {
  std::uint8_t style : 7 = 0;
  std::uint8_t critical : 1 = 0;  // contains something on the critical path
  std::uint8_t busy = 0;          // filled share, in units of 1/255; 0: empty
};

// The buckets of one row, in levels; buckets of each level are twice as long as those of the level below.
class RowMipmap {
public:
  RowMipmap() = default;
  RowMipmap(const Timeline& timeline, const Row& row);
  bool empty() const { return levels_.empty(); }
  Time shortest() const { return Time{1} << shift_; }  // bucket length of the lowest level
  // Summarizes [begin, end) from the level whose buckets are at most that long. `end - begin` must be at
  // least shortest().
  Bucket at(Time begin, Time end) const;
  std::size_t buckets() const;

private:
  Time origin_ = 0;
  int shift_ = 0;
  std::vector<std::vector<Bucket>> levels_;
};

// The critical path as a one-row timeline: its spans do not overlap, and it has gaps where the path is
// unknown.
struct PathRow {
  Timeline timeline;
  RowMipmap mipmap;
  std::vector<SpanId> spans;  // ids in the run's timeline, by span of this row
};

// The mipmaps of all rows of a timeline that are long enough to need one.
struct Mipmaps {
  std::vector<RowMipmap> rows;   // by row; empty: paint from the spans
  std::bitset<kStyles> styles;   // styles that occur in rows other than summaries
  std::vector<SpanId> critical;  // spans on the critical path, sorted by begin
  PathRow path;                  // empty: not known
  std::vector<double> greatest;  // maximum of each counter
};
// Returns null if cancelled.
std::shared_ptr<const Mipmaps> make_mipmaps(const Timeline& timeline, const std::atomic<bool>& cancelled);

// A piece of a row as shown at some scale; pieces are sorted from left to right.
struct Piece {
  double left = 0, right = 0;
  Style style = 0;
  bool critical = false;
  float busy = 1;  // filled share
  // The span if it is wide enough to be shown alone; kNoSpan: a pixel with several spans.
  SpanId span = kNoSpan;
};
// In pixels; narrower spans share a pixel.
inline constexpr double kAloneWidth = 2;
// `scale` maps the timeline's time; its `left` must be a whole pixel. Without a mipmap, or where it is too
// coarse, samples rows with many spans per pixel by binary search.
void pieces_of(const Timeline& timeline, const Row& row, const RowMipmap* mipmap, const TimeScale& scale,
               std::vector<Piece>& pieces);

}  // namespace rehearse::gui
