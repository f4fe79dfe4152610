// Finds spans by a search text: parts of names, and the terms kind:, pass:, mb:, step:, op:.
#pragma once

#include <atomic>

#include "gui/models/timeline/time_scale.hpp"

namespace rehearse::gui {

// All terms must match. Words that are no terms form one part of the name, joined with spaces; case is
// ignored.
struct SearchQuery {
  std::string name;
  std::vector<Kind> kinds;  // any of these; empty: all
  std::vector<Pass> passes;
  std::vector<std::int32_t> microbatches, steps, ops;
  std::string problem;  // "kind:foo: no such kind; known: compute, ..."; then the search finds nothing
  bool empty() const;
};
SearchQuery parse_query(std::string_view text);

// The spans found in one timeline, without those of summary rows.
struct Hits {
  std::vector<SpanId> spans;    // ascending
  std::vector<SpanId> by_time;  // the same spans, sorted by begin
  bool contains(SpanId span) const { return std::binary_search(spans.begin(), spans.end(), span); }
};
// Returns partial results once cancelled.
Hits find_spans(const Timeline& timeline, const SearchQuery& query, const std::atomic<bool>& cancelled);

}  // namespace rehearse::gui
