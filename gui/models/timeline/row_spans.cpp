#include "gui/models/timeline/row_spans.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rehearse::gui {

namespace {

constexpr std::uint32_t kNotYet = std::numeric_limits<std::uint32_t>::max();

struct Key {
  std::int64_t pid = 0;
  int op = 0, step = 0;
  Time begin = 0;
  std::uint32_t number = 0;  // number of the row or span
  auto what() const { return std::tie(pid, op, step); }
  bool operator<(const Key& other) const {
    return std::tie(pid, op, step, begin) < std::tie(other.pid, other.op, other.step, other.begin);
  }
};

// Returns the entry whose begin is nearest to the wanted one and within a microsecond of it, because readers
// can round times. For a wait, returns the first entry that does not begin earlier.
std::uint32_t find(const std::vector<Key>& keys, const Key& wanted, bool wait) {
  auto it = std::lower_bound(keys.begin(), keys.end(), wanted);
  const auto fits = [&](auto at) { return at != keys.end() && at->what() == wanted.what(); };
  if (wait) return fits(it) ? it->number : kNotYet;
  std::uint32_t best = kNotYet;
  Time distance = 1000;
  const auto take = [&](auto at) {
    if (!fits(at) || std::abs(at->begin - wanted.begin) > distance) return;
    best = at->number;
    distance = std::abs(at->begin - wanted.begin);
  };
  if (it != keys.begin()) take(it - 1);
  take(it);
  return best;
}

}  // namespace

RowSpans::RowSpans(const Trace& trace, const Timeline& timeline) : origin_(timeline.origin) {
  std::vector<Key> rows, spans;
  for (std::size_t row = 0; row < trace.spans.size(); ++row)
    rows.push_back({trace.spans.rank_class[row] + 1, trace.spans.op[row], trace.spans.step[row],
                    time_of(trace.spans.begin_s[row]), static_cast<std::uint32_t>(row)});
  std::sort(rows.begin(), rows.end());
  rows_.assign(timeline.spans.size(), kNotYet);
  for (const Row& line : timeline.rows) {
    if (line.track < 0) continue;  // a summary
    const std::int64_t pid = timeline.processes[line.process].pid;
    for (SpanId span = line.first; span < line.last; ++span) {
      if (timeline.spans.op[span] < 0) continue;
      const Key key{pid, timeline.spans.op[span], timeline.spans.step[span], timeline.spans.begin[span],
                    span};
      const bool wait = is_wait(timeline.spans.kind[span]);
      rows_[span] = find(rows, key, wait);
      if (!wait) spans.push_back(key);
    }
  }
  std::sort(spans.begin(), spans.end());
  spans_.assign(trace.spans.size(), kNotYet);
  for (const Key& row : rows) spans_[row.number] = find(spans, row, false);
}

SpanId RowSpans::span_of(std::size_t row) const {
  return row < spans_.size() ? spans_[row] : kNotYet;
}

std::size_t RowSpans::row_of(SpanId span) const {
  return span < rows_.size() && rows_[span] != kNotYet ? rows_[span] : kNoTraceRow;
}

Time RowSpans::time_of(double seconds) const {
  return static_cast<Time>(std::llround(seconds * 1e9)) - origin_;
}

double RowSpans::seconds_of(Time time) const {
  return static_cast<double>(time + origin_) / 1e9;
}

}  // namespace rehearse::gui
