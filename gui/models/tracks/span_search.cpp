#include "gui/models/tracks/span_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gui/models/tracks/track_layout.hpp"
#include "models/text/number_in.hpp"

namespace rehearse::gui {

namespace {

bool parse_number(std::string_view text, std::vector<std::int32_t>& into) {
  const auto number = number_in<std::int32_t>(text);
  if (number) into.push_back(*number);
  return number.has_value();
}

template <typename T, std::size_t N>
bool parse_name(std::string_view text, const std::array<std::string_view, N>& names, std::vector<T>& into) {
  bool any = false;
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i].substr(0, text.size()) != text || text.empty()) continue;
    if (names[i] == text) into.clear();
    into.push_back(static_cast<T>(i));
    any = true;
    if (names[i] == text) break;
  }
  return any;
}

template <typename T>
bool among(const std::vector<T>& wanted, T value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

}  // namespace

bool SearchQuery::empty() const {
  return name.empty() && kinds.empty() && passes.empty() && microbatches.empty() && steps.empty() &&
         ops.empty();
}

SearchQuery parse_query(std::string_view text) {
  SearchQuery query;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    const std::size_t colon = word.find(':');
    const std::string_view key = word.substr(0, colon == std::string_view::npos ? 0 : colon);
    const std::string_view value = colon == std::string_view::npos ? word : word.substr(colon + 1);
    if (key == "kind") {
      if (!parse_name(value, kKindNames, query.kinds))
        query.problem = fmt::format("{}: no such kind; known: {}", word, fmt::join(kKindNames, ", "));
    } else if (key == "pass") {
      if (!parse_name(value, kPassNames, query.passes))
        query.problem = fmt::format("{}: no such pass; known: {}", word, fmt::join(kPassNames, ", "));
    } else if (key == "mb" || key == "step" || key == "op") {
      if (!parse_number(value, key == "mb" ? query.microbatches : key == "step" ? query.steps : query.ops))
        query.problem = fmt::format("{}: not a number", word);
    } else {
      query.name += (query.name.empty() ? "" : " ") + std::string(word);
    }
  }
  return query;
}

Hits find_spans(const Timeline& timeline, const SearchQuery& query, const std::atomic<bool>& cancelled) {
  Hits hits;
  if (query.empty() || !query.problem.empty()) return hits;
  const SpanColumns& spans = timeline.spans;
  // There are few distinct names; match each only once.
  std::vector<bool> named(timeline.strings.size(), true);
  for (std::size_t i = 0; i < named.size() && !query.name.empty(); ++i)
    named[i] = holds(timeline.strings[i], query.name);
  for (const Row& row : timeline.rows) {
    if (cancelled) return hits;
    if (row.track < 0) continue;
    for (SpanId s = row.first; s < row.last; ++s)
      if (named[spans.name[s]] && among(query.kinds, spans.kind[s]) && among(query.passes, spans.pass[s]) &&
          among(query.microbatches, spans.microbatch[s]) && among(query.steps, spans.step[s]) &&
          among(query.ops, spans.op[s]))
        hits.spans.push_back(s);
  }
  hits.by_time = hits.spans;
  std::stable_sort(hits.by_time.begin(), hits.by_time.end(),
                   [&](SpanId a, SpanId b) { return spans.begin[a] < spans.begin[b]; });
  return hits;
}

}  // namespace rehearse::gui
