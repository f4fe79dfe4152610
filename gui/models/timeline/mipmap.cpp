#include "gui/models/timeline/mipmap.hpp"

#include <bit>
#include <numeric>

namespace rehearse::gui {

namespace {

constexpr std::size_t kFewSpans = 2048;  // rows with fewer spans are painted from the spans
constexpr std::size_t kSpansPerBucket = 2;

// The filled nanoseconds of an interval by style. Few styles occur in one interval: `present` holds one bit
// for each of them, and only those are visited because this runs for every span of a trace.
struct Filled {
  std::array<double, 16> by_style{};
  std::uint32_t present = 0;
  bool critical = false;

  bool any() const { return present != 0; }
  void add(Style style, double nanoseconds) {
    by_style[style] += nanoseconds;
    present |= 1U << style;
  }
  void add(const Filled& other) {
    for (std::uint32_t left = other.present; left != 0; left &= left - 1) {
      const auto style = static_cast<std::size_t>(std::countr_zero(left));
      by_style[style] += other.by_style[style];
    }
    present |= other.present;
    critical |= other.critical;
  }
  // Picks the style that takes the most time; the lowest one wins a tie. A bucket with any content is never
  // shown as empty.
  Bucket bucket(double length) const {
    Bucket result;
    double most = 0, sum = 0;
    for (std::uint32_t left = present; left != 0; left &= left - 1) {
      const auto style = static_cast<std::size_t>(std::countr_zero(left));
      sum += by_style[style];
      if (by_style[style] > most || left == present) {
        most = by_style[style];
        result.style = static_cast<std::uint8_t>(style) & 0x7f;
      }
    }
    result.critical = critical;
    result.busy =
        static_cast<std::uint8_t>(std::clamp(std::lround(255 * sum / length), any() ? 1L : 0L, 255L));
    return result;
  }
  void clear() {
    for (std::uint32_t left = present; left != 0; left &= left - 1)
      by_style[static_cast<std::size_t>(std::countr_zero(left))] = 0;
    present = 0;
    critical = false;
  }
};

// Builds all levels at once: adds each completed bucket to the open bucket of the level above.
struct Levels {
  Time shortest;
  std::vector<std::vector<Bucket>>& levels;
  std::vector<Filled> open;

  void done(std::size_t level) {
    levels[level].push_back(open[level].bucket(static_cast<double>(shortest << level)));
    if (level + 1 < levels.size()) open[level + 1].add(open[level]);
    open[level].clear();
    if (level + 1 < levels.size() && levels[level].size() % 2 == 0) done(level + 1);
  }
  void finish() {
    for (std::size_t level = 0; level + 1 < levels.size(); ++level)
      if (levels[level].size() % 2 == 1) {
        levels[level].push_back({});
        done(level + 1);
      }
  }
};

}  // namespace

RowMipmap::RowMipmap(const Timeline& timeline, const Row& row) {
  const SpanColumns& spans = timeline.spans;
  const std::size_t count = row.last - row.first;
  if (count < kFewSpans) return;
  origin_ = spans.begin[row.first];
  const Time end = spans.end[row.last - 1];
  const auto wanted = static_cast<std::uint64_t>(end - origin_) / (count / kSpansPerBucket) + 1;
  shift_ = static_cast<int>(std::bit_width(wanted)) - 1;
  const Time length = shortest();
  const auto lowest = static_cast<std::size_t>((end - origin_) / length + 1);
  levels_.resize(static_cast<std::size_t>(std::bit_width(lowest - 1)) + 1);
  Levels levels{length, levels_, std::vector<Filled>(levels_.size())};
  levels_[0].reserve(lowest + 1);
  Time bucket_end = origin_ + length;
  for (SpanId s = row.first; s < row.last; ++s) {
    const Style style = style_of(spans.kind[s], spans.pass[s]);
    Time from = spans.begin[s];
    const Time to = spans.end[s];
    while (from >= bucket_end) {
      levels.done(0);
      bucket_end += length;
    }
    for (;;) {
      const Time until = std::min(to, bucket_end);
      Filled& filled = levels.open[0];
      filled.add(style, static_cast<double>(until - from));
      filled.critical |= spans.critical[s];
      if (to <= bucket_end) break;
      from = bucket_end;
      levels.done(0);
      bucket_end += length;
    }
  }
  levels.done(0);
  levels.finish();
  for (auto& level : levels_) level.shrink_to_fit();
}

std::size_t RowMipmap::buckets() const {
  return std::accumulate(levels_.begin(), levels_.end(), std::size_t{0},
                         [](std::size_t sum, const auto& level) { return sum + level.size(); });
}

Bucket RowMipmap::at(Time begin, Time end) const {
  const auto span = static_cast<std::uint64_t>(std::max<Time>(1, end - begin));
  const int level = std::clamp<int>(static_cast<int>(std::bit_width(span)) - 1 - shift_, 0,
                                    static_cast<int>(levels_.size()) - 1);
  const std::vector<Bucket>& buckets = levels_[static_cast<std::size_t>(level)];
  const int shift = shift_ + level;
  const Time first = std::max<Time>(0, (begin - origin_) >> shift);
  const Time last = std::min<Time>(static_cast<Time>(buckets.size()) - 1, (end - 1 - origin_) >> shift);
  Bucket result;
  // The range overlaps at most three buckets, the outer ones partly: add up their shares and take the
  // predominant style.
  double sum = 0;
  std::array<float, 16> by_style{};
  bool any = false;
  for (Time i = first; i <= last; ++i) {
    const Bucket& bucket = buckets[static_cast<std::size_t>(i)];
    if (bucket.busy == 0) continue;
    const Time from = origin_ + (i << shift);
    const auto part =
        static_cast<double>(std::min(end, from + (Time{1} << shift)) - std::max(begin, from)) * bucket.busy;
    any = true;
    sum += part;
    by_style[bucket.style] += static_cast<float>(part);
    if (by_style[bucket.style] > by_style[result.style] || sum == part) result.style = bucket.style;
    result.critical |= bucket.critical;
  }
  if (any)
    result.busy =
        static_cast<std::uint8_t>(std::clamp(std::lround(sum / static_cast<double>(end - begin)), 1L, 255L));
  return result;
}

namespace {

PathRow path_of(const Timeline& timeline, const std::vector<SpanId>& critical) {
  PathRow path;
  path.timeline.strings = timeline.strings;
  path.timeline.processes.resize(1);
  path.timeline.rows.resize(1);
  path.timeline.rows[0].track = 0;  // marks the row as one of spans, not a summary
  const SpanColumns& from = timeline.spans;
  SpanColumns& spans = path.timeline.spans;
  Time last = std::numeric_limits<Time>::min();
  for (const SpanId s : critical) {
    const Time begin = std::max(from.begin[s], last);
    if (from.end[s] <= begin) continue;
    last = from.end[s];
    path.spans.push_back(s);
    spans.begin.push_back(begin);
    spans.end.push_back(last);
    spans.name.push_back(from.name[s]);
    spans.kind.push_back(from.kind[s]);
    spans.pass.push_back(from.pass[s]);
    spans.microbatch.push_back(from.microbatch[s]);
  }
  spans.fill_unknown();
  path.timeline.rows[0].last = static_cast<SpanId>(spans.size());
  if (spans.size() > 0) {
    path.timeline.begin = spans.begin.front();
    path.timeline.end = last;
  }
  path.mipmap = RowMipmap(path.timeline, path.timeline.rows[0]);
  return path;
}

}  // namespace

std::shared_ptr<const Mipmaps> make_mipmaps(const Timeline& timeline, const std::atomic<bool>& cancelled) {
  auto result = std::make_shared<Mipmaps>();
  const SpanColumns& spans = timeline.spans;
  result->rows.reserve(timeline.rows.size());
  for (const Row& row : timeline.rows) {
    if (cancelled) return nullptr;
    result->rows.emplace_back(timeline, row);
    if (row.track < 0) continue;
    for (SpanId s = row.first; s < row.last; ++s) {
      result->styles.set(style_of(spans.kind[s], spans.pass[s]));
      if (spans.critical[s]) result->critical.push_back(s);
    }
  }
  std::stable_sort(result->critical.begin(), result->critical.end(),
                   [&](SpanId a, SpanId b) { return spans.begin[a] < spans.begin[b]; });
  if (!result->critical.empty()) result->path = path_of(timeline, result->critical);
  for (const Counter& counter : timeline.counters)
    result->greatest.push_back(
        counter.value.empty() ? 0 : *std::max_element(counter.value.begin(), counter.value.end()));
  return result;
}

namespace {

// Accumulates the narrow spans within the current pixel.
class Pixel {
public:
  explicit Pixel(std::vector<Piece>& pieces) : pieces_(pieces) {}
  void add(double left, double right, Style style, bool critical) {
    const double first = std::floor(left);
    if (first != left_) {
      flush();
      left_ = first;
    }
    const double inside = std::min(right, first + 1) - left;
    filled_.add(style, inside);
    filled_.critical |= critical;
    if (right > first + 1) add(first + 1, right, style, critical);
  }
  void flush() {
    if (!filled_.any()) return;
    const Bucket bucket = filled_.bucket(1);
    pieces_.push_back({left_, left_ + 1, bucket.style, bucket.critical != 0,
                       static_cast<float>(bucket.busy) / 255, kNoSpan});
    filled_.clear();
  }

private:
  std::vector<Piece>& pieces_;
  double left_ = -1e300;
  Filled filled_;
};

void from_spans(const Timeline& timeline, SpanId first, SpanId last, const TimeScale& scale,
                std::vector<Piece>& pieces) {
  const SpanColumns& spans = timeline.spans;
  const double right_end = scale.left + scale.width;
  Pixel pixel(pieces);
  for (SpanId s = first; s < last; ++s) {
    const double left = std::max(scale.x(spans.begin[s]), scale.left);
    const double right = std::min(scale.x(spans.end[s]), right_end);
    const Style style = style_of(spans.kind[s], spans.pass[s]);
    if (right - left >= kAloneWidth) {
      pixel.flush();
      pieces.push_back({left, right, style, spans.critical[s], 1, s});
    } else if (left < right_end) {
      pixel.add(left, right, style, spans.critical[s]);
    }
  }
  pixel.flush();
}

// Replaces a run of completely filled pixels by the span that covers it, so that it gets a label as when
// painted alone.
void join_equal(const Timeline& timeline, const Row& row, const TimeScale& scale, std::size_t from,
                std::vector<Piece>& pieces) {
  std::size_t kept = from;
  for (std::size_t i = from; i < pieces.size();) {
    Piece piece = pieces[i];
    if (piece.busy < 1) {
      pieces[kept++] = piece;
      ++i;
      continue;
    }
    const SpanId span = timeline.at(row, scale.time(piece.left + 0.5));
    const double end = span == kNoSpan ? piece.right : scale.x(timeline.spans.end[span]);
    std::size_t next = i + 1;
    while (next < pieces.size() && pieces[next].right <= end && pieces[next].left == pieces[next - 1].right)
      ++next;
    if (next > i + 2) {
      piece.left = std::max(scale.left, scale.x(timeline.spans.begin[span]));
      piece.right = std::min(end, scale.left + scale.width);
      piece.span = span;
      piece.style = style_of(timeline.spans.kind[span], timeline.spans.pass[span]);
      piece.critical = timeline.spans.critical[span];
    } else {
      next = i + 1;
    }
    pieces[kept++] = piece;
    i = next;
  }
  pieces.resize(kept);
}

void from_mipmap(const Timeline& timeline, const Row& row, const RowMipmap& mipmap, const TimeScale& scale,
                 std::vector<Piece>& pieces) {
  const std::size_t from = pieces.size();
  const auto count = static_cast<int>(std::ceil(scale.width));
  const double ns = 1 / scale.pixels_per_ns();
  const Time row_begin = timeline.spans.begin[row.first], row_end = timeline.spans.end[row.last - 1];
  Time begin = scale.range.begin;
  for (int i = 0; i < count; ++i) {
    const Time end = scale.range.begin + static_cast<Time>(std::llround((i + 1) * ns));
    if (end > row_begin && begin < row_end) {
      const Bucket bucket = mipmap.at(begin, end);
      if (bucket.busy > 0)
        pieces.push_back({scale.left + i, scale.left + i + 1, bucket.style, bucket.critical != 0,
                          static_cast<float>(bucket.busy) / 255, kNoSpan});
    }
    begin = end;
  }
  join_equal(timeline, row, scale, from, pieces);
}

void from_samples(const Timeline& timeline, const Row& row, const TimeScale& scale,
                  std::vector<Piece>& pieces) {
  const SpanColumns& spans = timeline.spans;
  const auto count = static_cast<int>(std::ceil(scale.width));
  const double ns = 1 / scale.pixels_per_ns();
  for (int i = 0; i < count;) {
    const Time begin = scale.range.begin + static_cast<Time>(std::llround(i * ns));
    const SpanId s = timeline.first_after(row, begin);
    if (s == row.last) break;
    const double left = std::max(scale.x(spans.begin[s]), scale.left), right = scale.x(spans.end[s]);
    const Style style = style_of(spans.kind[s], spans.pass[s]);
    const int at = std::max(i, static_cast<int>(left - scale.left));
    if (at >= count) break;
    if (right - left >= kAloneWidth) {
      pieces.push_back({left, std::min(right, scale.left + scale.width), style, spans.critical[s], 1, s});
      i = std::max(at + 1, static_cast<int>(right - scale.left));
    } else {
      pieces.push_back({scale.left + at, scale.left + at + 1, style, spans.critical[s], 1, kNoSpan});
      i = at + 1;
    }
  }
}

}  // namespace

void pieces_of(const Timeline& timeline, const Row& row, const RowMipmap* mipmap, const TimeScale& scale,
               std::vector<Piece>& pieces) {
  if (row.first == row.last || scale.width < 1) return;
  const auto begins = timeline.spans.begin.begin();
  const SpanId first = timeline.first_after(row, scale.range.begin - 1);
  const auto last =
      static_cast<SpanId>(std::lower_bound(begins + first, begins + row.last, scale.range.end) - begins);
  const double ns = 1 / scale.pixels_per_ns();
  if (last - first <= 4 * scale.width)
    from_spans(timeline, first, last, scale, pieces);
  else if (mipmap && !mipmap->empty() && ns >= static_cast<double>(mipmap->shortest()))
    from_mipmap(timeline, row, *mipmap, scale, pieces);
  else
    from_samples(timeline, row, scale, pieces);
}

}  // namespace rehearse::gui
