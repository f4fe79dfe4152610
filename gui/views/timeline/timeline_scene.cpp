#include "gui/views/timeline/timeline_scene.hpp"

#include <QRectF>

namespace rehearse::gui {

namespace {

constexpr int kLeastRowHeight = 4, kGreatestRowHeight = 60, kUsualRowHeight = 20;
constexpr double kReach = 3;  // pixels; the mouse picks a span within this distance

bool valid(const Run& run, SpanId span) {
  return run.timeline && span < run.timeline->spans.size();
}

// Returns the span behind a collapsed rank's summary at `time`: a running span of the same kind as the
// summary, preferably of the same pass.
SpanId under_summary(const Timeline& timeline, const Process& process, Time time, SpanId summary) {
  SpanId found = kNoSpan;
  for (int t = process.first_track; t < process.last_track; ++t) {
    const Track& track = timeline.tracks[static_cast<std::size_t>(t)];
    for (int r = track.first_row; r < track.last_row; ++r) {
      const SpanId s = timeline.at(timeline.rows[static_cast<std::size_t>(r)], time);
      if (s == kNoSpan) continue;
      const bool of_kind = summary != kNoSpan && timeline.spans.kind[s] == timeline.spans.kind[summary];
      if (of_kind && (timeline.spans.pass[summary] == Pass::none ||
                      timeline.spans.pass[s] == timeline.spans.pass[summary]))
        return s;
      if (found == kNoSpan || of_kind) found = s;
    }
  }
  return found;
}

// Returns the span at `x`, or the nearest one within kReach.
SpanId span_near(const Timeline& timeline, const Row& row, const TimeScale& scale, double x) {
  const Time time = scale.time(x);
  if (const SpanId exact = timeline.at(row, time); exact != kNoSpan) return exact;
  const SpanId after = timeline.first_after(row, time);
  SpanId best = kNoSpan;
  double nearest = kReach;
  if (after < row.last && scale.x(timeline.spans.begin[after]) - x <= nearest) {
    nearest = scale.x(timeline.spans.begin[after]) - x;
    best = after;
  }
  if (after > row.first && x - scale.x(timeline.spans.end[after - 1]) < nearest) best = after - 1;
  return best;
}

}  // namespace

TimelineScene::TimelineScene(Session& session, ViewState& state, QObject* parent)
    : QObject(parent), session_(session), state_(state) {
  connect(&session_, &Session::shown_changed, this, &TimelineScene::shown_changed);
  connect(&session_, &Session::runs_changed, this, &TimelineScene::shown_changed);
  connect(&session_, &Session::run_changed, this, &TimelineScene::shown_changed);
  connect(&state_, &ViewState::rows_changed, this, &TimelineScene::lay_out_again);
  connect(&state_, &ViewState::marks_changed, this, [this] {
    if (path_shown_ != state_.shows_critical_path()) lay_out_again();
  });
  connect(&state_, &ViewState::search_changed, this, &TimelineScene::search);
  connect(&groups_, &GroupSummaries::made, this, &TimelineScene::content_changed);
  shown_changed();
}

void TimelineScene::shown_changed() {
  std::optional<TimeRange> whole;
  std::vector<Session::RunPointer> shown = session_.shown();
  for (const auto& run : shown) {
    if (!run->timeline) continue;
    make(run);
    const TimeRange range{run->timeline->begin - run->aligned, run->timeline->end - run->aligned};
    if (range.length() <= 0) continue;
    whole = whole ? TimeRange{std::min(whole->begin, range.begin), std::max(whole->end, range.end)} : range;
  }
  std::erase_if(made_, [&](const auto& made) { return !session_.run(made.first); });
  if (whole) state_.set_whole(*whole);
  lay_out_again();
  search();
}

void TimelineScene::lay_out_again() {
  LayoutOptions options;
  options.filter = state_.filter().trimmed().toStdString();
  options.grouping = state_.grouping();
  options.collapsed = state_.collapsed();
  options.expanded = state_.expanded();
  options.collapsed_groups = state_.collapsed_groups();
  options.expanded_groups = state_.expanded_groups();
  options.pinned = state_.pinned();
  options.counters = state_.shows_counters();
  options.row_height = row_height_;
  options.fit_rows = fit_rows_;
  options.room = std::max(1, canvas_.height());
  path_shown_ = state_.shows_critical_path();
  if (path_shown_)
    for (const auto& [id, made] : made_)
      if (made.mipmaps && !made.mipmaps->path.spans.empty()) options.with_path.insert(id);
  std::vector<Session::RunPointer> shown = session_.shown();
  std::erase_if(shown, [](const auto& run) { return !run->timeline; });
  lines_ = lay_out(shown, options);
  groups_.follow(lines_, session_);
  scroll_ = std::clamp(scroll_, 0, greatest_scroll());
  emit lines_changed();
}

void TimelineScene::set_row_height(int height) {
  height = std::clamp(height, kLeastRowHeight, kGreatestRowHeight);
  if (height == row_height_ && !fit_rows_) return;
  // Keep the vertical centre in place.
  const int middle = scroll_ + canvas_.height() / 2;
  const double share = height_of(lines_) > 0 ? static_cast<double>(middle) / height_of(lines_) : 0;
  row_height_ = height;
  fit_rows_ = false;
  lay_out_again();
  if (greatest_scroll() > 0) set_scroll(static_cast<int>(share * height_of(lines_)) - canvas_.height() / 2);
}

void TimelineScene::fit_rows() {
  fit_rows_ = true;
  row_height_ = kUsualRowHeight;
  state_.set_all_collapsed(std::set<ViewState::ProcessRef>{});
  state_.set_all_collapsed(std::set<GroupRef>{});
  lay_out_again();
  set_scroll(0);
}

void TimelineScene::reveal_run(int run) {
  const auto first =
      std::find_if(lines_.begin(), lines_.end(), [&](const Line& line) { return line.run == run; });
  if (first == lines_.end()) return;
  auto last = first;
  while (last + 1 != lines_.end() && (last + 1)->run == run) ++last;
  if (first->y < scroll_ || last->bottom() > scroll_ + canvas_.height()) set_scroll(first->y);
}

void TimelineScene::set_scroll(int y) {
  y = std::clamp(y, 0, greatest_scroll());
  if (y == scroll_) return;
  scroll_ = y;
  emit scrolled();
}

void TimelineScene::set_canvas(QSize size) {
  if (size == canvas_) return;
  const bool higher = size.height() != canvas_.height();
  canvas_ = size;
  if (higher) lay_out_again();
  scroll_ = std::clamp(scroll_, 0, greatest_scroll());
  emit scrolled();
}

TimeScale TimelineScene::scale_of(const Run& run) const {
  TimeScale result = scale();
  result.range.begin += run.aligned;
  result.range.end += run.aligned;
  return result;
}

TimelineScene::Place TimelineScene::at(QPointF pixel) const {
  Place place;
  place.time = scale().time(pixel.x());
  place.line = line_at(lines_, static_cast<int>(pixel.y()) + scroll_);
  if (place.line < 0) return place;
  const Line& line = lines_[static_cast<std::size_t>(place.line)];
  place.group = line.group;
  place.collapsed = line.collapsed;
  if (line.process >= 0 && !line.group) place.process = {line.run, line.process};
  const auto run = session_.run(line.run);
  if (!run || !run->timeline) return place;
  const Timeline& timeline = *run->timeline;
  if (line.type == Line::Type::path) {
    if (const PathRow* path = path_of(line.run)) {
      const SpanId span = span_near(path->timeline, path->timeline.rows.front(), scale_of(*run), pixel.x());
      if (span != kNoSpan) place.span = {line.run, path->spans[span]};
    }
    return place;
  }
  // The first rank represents a group of identical ranks.
  if (line.group && line.collapsed && line.group->ref.grouping == Grouping::kind) {
    const Process& process = timeline.processes[static_cast<std::size_t>(line.process)];
    if (process.summary_row < 0) return place;
    const Row& row = timeline.rows[static_cast<std::size_t>(process.summary_row)];
    const SpanId span = span_near(timeline, row, scale_of(*run), pixel.x());
    if (span == kNoSpan) return place;
    place.span = {line.run, under_summary(timeline, process, scale_of(*run).time(pixel.x()), span)};
    if (place.span.span == kNoSpan) place.span = {};
    return place;
  }
  if (line.row < 0) return place;
  const Row& row = timeline.rows[static_cast<std::size_t>(line.row)];
  const SpanId span = span_near(timeline, row, scale_of(*run), pixel.x());
  if (line.type == Line::Type::row) {
    place.row = {line.run, line.row};
    place.span = {line.run, span};
  } else if (span != kNoSpan) {
    const Process& process = timeline.processes[static_cast<std::size_t>(line.process)];
    place.span = {line.run, under_summary(timeline, process, scale_of(*run).time(pixel.x()), span)};
  }
  if (place.span.span == kNoSpan) place.span = {};
  return place;
}

bool TimelineScene::knows(SpanRef span) const {
  const auto run = session_.run(span.run);
  return run && valid(*run, span.span);
}

TimeRange TimelineScene::range_of(SpanRef span) const {
  const auto run = session_.run(span.run);
  if (!run || !valid(*run, span.span)) return {};
  const SpanColumns& spans = run->timeline->spans;
  return {spans.begin[span.span] - run->aligned, spans.end[span.span] - run->aligned};
}

QRectF TimelineScene::rect_of(SpanRef span) const {
  const auto run = session_.run(span.run);
  if (!run || !valid(*run, span.span) || !session_.is_shown(span.run)) return {};
  const int at = line_of_row(lines_, *run->timeline, span.run, run->timeline->row_of(span.span));
  if (at < 0) return {};
  const Line& line = lines_[static_cast<std::size_t>(at)];
  const TimeRange range = range_of(span);
  const TimeScale axis = scale();
  const double left = std::clamp(axis.x(range.begin), -1e6, 1e6),
               right = std::clamp(axis.x(range.end), -1e6, 1e6);
  return {left, static_cast<double>(line.y - scroll_), std::max(1.0, right - left),
          static_cast<double>(line.height)};
}

void TimelineScene::reveal(SpanRef span) {
  if (!knows(span)) return;
  const QRectF rect = rect_of(span);
  if (!rect.isNull()) {
    const int y = static_cast<int>(rect.y()) + scroll_, height = static_cast<int>(rect.height());
    if (rect.y() < 0 || rect.bottom() > canvas_.height()) set_scroll(y + height / 2 - canvas_.height() / 2);
  }
  reveal_range(range_of(span));
}

void TimelineScene::reveal_range(TimeRange range) {
  const TimeRange visible = state_.visible();
  if (range.end > visible.begin && range.begin < visible.end &&
      (range.length() > visible.length() || (range.begin >= visible.begin && range.end <= visible.end)))
    return;
  Time begin = range.begin + range.length() / 2 - visible.length() / 2;
  if (range.length() > visible.length()) begin = range.begin - visible.length() / 10;
  state_.set_visible({begin, begin + visible.length()});
}

void TimelineScene::reveal_rank(int run, int process) {
  if (state_.collapsed().contains({run, kRunItself})) state_.set_collapsed({run, kRunItself}, false);
  const auto line_of = [&] {
    return std::find_if(lines_.begin(), lines_.end(), [&](const Line& line) {
      return line.run == run && line.type == Line::Type::process && line.process == process;
    });
  };
  if (line_of() == lines_.end())
    for (const Line& line : lines_) {
      if (line.run != run || !line.group) continue;
      const std::vector<int>& inside = line.group->processes;
      if (std::find(inside.begin(), inside.end(), process) == inside.end()) continue;
      state_.set_collapsed(GroupRef(line.group->ref), false);  // rebuilds the lines
      break;
    }
  const auto line = line_of();
  if (line == lines_.end()) return;
  if (line->y < scroll_ || line->bottom() > scroll_ + canvas_.height())
    set_scroll(line->y + line->height / 2 - canvas_.height() / 2);
}

// ----- background results

const Mipmaps* TimelineScene::mipmaps(int run) const {
  const auto at = made_.find(run);
  return at == made_.end() ? nullptr : at->second.mipmaps.get();
}

const PathRow* TimelineScene::path_of(int run) const {
  const Mipmaps* made = mipmaps(run);
  return made && !made->path.spans.empty() ? &made->path : nullptr;
}

std::bitset<kStyles> TimelineScene::styles() const {
  std::bitset<kStyles> all;
  for (const auto& run : session_.shown())
    if (const Mipmaps* made = mipmaps(run->id)) all |= made->styles;
  return all;
}

void TimelineScene::make(const Session::RunPointer& run) {
  Made& made = made_[run->id];
  if (made.of.lock() == run->timeline) return;
  made.of = run->timeline;
  made.mipmaps.reset();
  if (!made.work) made.work = std::make_unique<Latest>(this);
  made.work->ask([timeline = run->timeline](
                     const std::atomic<bool>& cancelled) { return make_mipmaps(*timeline, cancelled); },
                 [this, id = run->id](const std::shared_ptr<const Mipmaps>& mipmaps) {
                   made_[id].mipmaps = mipmaps;
                   if (path_shown_) lay_out_again();
                   emit content_changed();
                 });
}

bool TimelineScene::ready() const {
  return !searching_ && groups_.ready() &&
         std::none_of(made_.begin(), made_.end(), [](const auto& made) { return made.second.work->busy(); });
}

// ----- search

void TimelineScene::search() {
  search_work_.cancel();
  hits_.clear();
  hit_number_ = 0;
  query_ = parse_query(state_.search().toStdString());
  searching_ = !query_.empty() && query_.problem.empty();
  if (!searching_) {
    emit hits_changed();
    return;
  }
  std::vector<std::pair<int, std::shared_ptr<const Timeline>>> timelines;
  for (const auto& run : session_.shown())
    if (run->timeline) timelines.emplace_back(run->id, run->timeline);
  search_work_.ask(
      [timelines = std::move(timelines), query = query_](const std::atomic<bool>& cancelled) {
        std::map<int, Hits> found;
        for (const auto& [id, timeline] : timelines) found[id] = find_spans(*timeline, query, cancelled);
        return found;
      },
      [this](std::map<int, Hits> found) {
        hits_ = std::move(found);
        searching_ = false;
        emit hits_changed();
      });
  emit hits_changed();
}

const Hits* TimelineScene::hits(int run) const {
  const auto at = hits_.find(run);
  return at == hits_.end() ? nullptr : &at->second;
}

std::size_t TimelineScene::hit_count() const {
  std::size_t count = 0;
  for (const auto& [run, hits] : hits_) count += hits.spans.size();
  return count;
}

void TimelineScene::go_to_hit(int by) {
  const std::size_t count = hit_count();
  if (count == 0) return;
  // Hits are ordered by run, then by time; start with the first one in the visible range.
  if (hit_number_ == 0) {
    std::size_t before = 0;
    for (const auto& run : session_.shown()) {
      const Hits* found = hits(run->id);
      if (!found) continue;
      const SpanColumns& spans = run->timeline->spans;
      const Time from = state_.visible().begin + run->aligned;
      const auto at = std::partition_point(found->by_time.begin(), found->by_time.end(),
                                           [&](SpanId s) { return spans.begin[s] < from; });
      before += static_cast<std::size_t>(at - found->by_time.begin());
      if (at != found->by_time.end()) break;
    }
    hit_number_ = by > 0 ? before % count + 1 : (before + count - 1) % count + 1;
  } else {
    hit_number_ = (hit_number_ - 1 + count + (by > 0 ? 1 : count - 1)) % count + 1;
  }
  std::size_t left = hit_number_ - 1;
  for (const auto& run : session_.shown()) {
    const Hits* found = hits(run->id);
    if (!found) continue;
    if (left >= found->by_time.size()) {
      left -= found->by_time.size();
      continue;
    }
    const SpanRef span{run->id, found->by_time[left]};
    state_.select(span);
    reveal(span);
    break;
  }
  emit hits_changed();
}

}  // namespace rehearse::gui
