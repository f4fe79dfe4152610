// Binds the ends of arrows to the spans around them.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "gui/models/trace/timeline_layout.hpp"

namespace rehearse::gui {
namespace {

// Returns the innermost span of the track around `time`, preferring one that begins then to one that ends
// then. If there is none and `next` is set, returns the first span that begins later. `hint`: for each row,
// where the last search ended.
SpanId bound(const Timeline& timeline, const Track& track, Time time, bool next, std::vector<SpanId>& hint) {
  SpanId found = kNoSpan, later = kNoSpan;
  bool touches = true;  // `found` only touches `time` with its end
  const auto& begin = timeline.spans.begin;
  const auto& end = timeline.spans.end;
  for (int r = track.first_row; r < track.last_row; ++r) {
    const Row& row = timeline.rows[r];
    SpanId& at = hint[r - track.first_row];
    while (at < row.last && end[at] < time) ++at;
    for (SpanId span = at; span < row.last && begin[span] <= time; ++span) {
      const bool only_touches = end[span] == time;
      if (found == kNoSpan || touches || !only_touches) {
        found = span;
        touches = only_touches && begin[span] != time;
      }
    }
    SpanId after = at;
    while (after < row.last && begin[after] < time) ++after;
    if (after < row.last && (later == kNoSpan || begin[after] < begin[later])) later = after;
  }
  if (found != kNoSpan) return found;
  // Time stamps are rounded: the span can begin a nanosecond later.
  if (later != kNoSpan && (next || begin[later] <= time + 1)) return later;
  return kNoSpan;
}

}  // namespace

void index_flows(Timeline& timeline) {
  auto& flows = timeline.flows;
  std::sort(flows.begin(), flows.end(),
            [](const Flow& a, const Flow& b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); });
  timeline.flows_to.resize(flows.size());
  std::iota(timeline.flows_to.begin(), timeline.flows_to.end(), 0U);
  std::stable_sort(timeline.flows_to.begin(), timeline.flows_to.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return flows[a].to < flows[b].to; });
}

void bind_flows(Timeline& timeline, std::vector<Draft::FlowEnd>& ends, const std::vector<int>& track_of,
                std::map<std::string, std::uint64_t>& left_out) {
  std::sort(ends.begin(), ends.end(), [](const auto& a, const auto& b) {
    return std::tie(a.track, a.time) < std::tie(b.track, b.time);
  });
  struct End {
    std::uint64_t key;
    Time time;
    SpanId span;
    char phase;
  };
  std::vector<End> bound_ends;
  bound_ends.reserve(ends.size());
  std::vector<SpanId> hint;
  std::uint64_t lost = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Draft::FlowEnd& end = ends[i];
    const int number = track_of[end.track];
    if (number < 0) {
      ++lost;
      continue;
    }
    const Track& track = timeline.tracks[number];
    if (i == 0 || ends[i - 1].track != end.track) {
      hint.clear();
      for (int r = track.first_row; r < track.last_row; ++r) hint.push_back(timeline.rows[r].first);
    }
    const SpanId span = bound(timeline, track, end.time, end.phase != 's' && !end.enclosing, hint);
    if (span == kNoSpan)
      ++lost;
    else
      bound_ends.push_back({end.key, end.time, span, end.phase});
  }
  std::vector<Draft::FlowEnd>().swap(ends);
  const auto rank = [](char phase) { return phase == 's' ? 0 : phase == 't' ? 1 : 2; };
  std::sort(bound_ends.begin(), bound_ends.end(), [&](const End& a, const End& b) {
    return std::make_tuple(a.key, a.time, rank(a.phase)) < std::make_tuple(b.key, b.time, rank(b.phase));
  });
  for (std::size_t i = 0; i < bound_ends.size();) {
    std::size_t last = i;
    while (last < bound_ends.size() && bound_ends[last].key == bound_ends[i].key) ++last;
    // Two ends belong together even if clock differences put the second before the first.
    if (last - i == 2 && bound_ends[i].phase == 'f' && bound_ends[i + 1].phase == 's')
      std::swap(bound_ends[i], bound_ends[i + 1]);
    SpanId from = kNoSpan;
    for (; i < last; ++i) {
      const End& end = bound_ends[i];
      if (end.phase != 's') {
        if (from == kNoSpan)
          ++lost;
        else if (from != end.span)
          timeline.flows.push_back({from, end.span});
      }
      from = end.phase == 'f' ? kNoSpan : end.span;
    }
  }
  if (lost > 0) left_out["ends of arrows have no span or no beginning and are not shown"] += lost;
  index_flows(timeline);
}

}  // namespace rehearse::gui
