// The spans of a track in rows in which nothing overlaps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gui/models/trace_draft.hpp"

namespace rehearse::gui {

// Numbers of records by track and, within, by time; of those that begin together moments first, then the
// longest.
struct Order {
  std::vector<std::uint32_t> records;
  std::vector<std::size_t> first;  // of track t: [t], [t + 1]
  std::span<const std::uint32_t> of_track(std::size_t track) const {
    return {records.data() + first[track], first[track + 1] - first[track]};
  }
};
Order ordered(const Draft& draft);

struct PackedRow {
  std::vector<std::uint32_t> records;
  std::size_t waits = 0;         // spans of waiting before transfers
  std::size_t dependencies = 0;  // of all
  std::size_t detail_bytes = 0;
};
struct PackedTrack {
  std::vector<PackedRow> rows;
  std::uint64_t too_deep = 0;  // nested deeper than rows are made
};
// Below what encloses it, else in the first row that is free. What is not told of a profiler's span that is
// nested in another is taken over from that.
PackedTrack packed(Draft& draft, std::span<const std::uint32_t> records);

// When the record, behind one that ends at `before` in its row, begins to wait for its peer: at its begin if
// it waits for none.
inline Time waits_since(const Record& record, Time before) {
  if (!record.waits || record.ready < 0) return record.begin;
  return std::min(record.begin, std::max(record.ready, before));
}

}  // namespace rehearse::gui
