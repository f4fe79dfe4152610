// Packs the spans of a track into rows without overlaps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gui/models/trace/trace_draft.hpp"

namespace rehearse::gui {

// Record numbers sorted by track and then by begin; among equal begins, instants come first, then longer
// records before shorter ones.
struct Order {
  std::vector<std::uint32_t> records;
  std::vector<std::size_t> first;  // the records of track t are at [first[t], first[t + 1])
  std::span<const std::uint32_t> of_track(std::size_t track) const {
    return {records.data() + first[track], first[track + 1] - first[track]};
  }
};
Order ordered(const Draft& draft);

struct PackedRow {
  std::vector<std::uint32_t> records;
  std::size_t waits = 0;         // number of waiting spans before transfers
  std::size_t dependencies = 0;  // sum over all records
  std::size_t detail_bytes = 0;
};
struct PackedTrack {
  std::vector<PackedRow> rows;
  std::uint64_t too_deep = 0;  // records nested deeper than the limit of rows, which are dropped
};
// Places each record below the one that encloses it, else in the first free row. A span nested in another one
// of a profile inherits the pass and step that it lacks.
PackedTrack packed(Draft& draft, std::span<const std::uint32_t> records);

// Returns when the record begins to wait for its peer; it follows a record that ends at `before` in its row.
// Returns its begin if it does not wait.
inline Time waits_since(const Record& record, Time before) {
  if (!record.waits || record.ready < 0) return record.begin;
  return std::min(record.begin, std::max(record.ready, before));
}

}  // namespace rehearse::gui
