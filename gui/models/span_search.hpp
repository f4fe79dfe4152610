// Spans that a search text names: parts of names, and kind:, pass:, mb:, step:, op:.
#pragma once

#include <atomic>

#include "gui/models/time_scale.hpp"

namespace rehearse::gui {

// All terms must hold; words that are no term are parts of the name, together with the spaces between them,
// whatever the case.
struct SearchQuery {
  std::string name;
  std::vector<Kind> kinds;  // any of these; empty: all
  std::vector<Pass> passes;
  std::vector<std::int32_t> microbatches, steps, ops;
  std::string problem;  // "kind:foo: no such kind; known: compute, ..."; then nothing is found
  bool empty() const;
};
SearchQuery parse_query(std::string_view text);

// What was found in one timeline, summary rows left out.
struct Hits {
  std::vector<SpanId> spans;    // ascending
  std::vector<SpanId> by_time;  // the same, by begin
  bool contains(SpanId span) const { return std::binary_search(spans.begin(), spans.end(), span); }
};
// Gives up, with what it has, when cancelled.
Hits find_spans(const Timeline& timeline, const SearchQuery& query, const std::atomic<bool>& cancelled);

}  // namespace rehearse::gui
