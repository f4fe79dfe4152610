#include "gui/models/timeline/group_summary.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>

namespace rehearse::gui {

namespace {

// Returns the summary rows of the processes, or all their rows if none has a summary.
std::vector<int> telling_rows(const Timeline& timeline, const std::vector<int>& processes) {
  std::vector<int> rows;
  for (const int p : processes)
    if (const int row = timeline.processes[static_cast<std::size_t>(p)].summary_row; row >= 0)
      rows.push_back(row);
  if (!rows.empty()) return rows;
  for (const int p : processes) {
    const Process& process = timeline.processes[static_cast<std::size_t>(p)];
    for (int t = process.first_track; t < process.last_track; ++t)
      for (int r = timeline.tracks[static_cast<std::size_t>(t)].first_row;
           r < timeline.tracks[static_cast<std::size_t>(t)].last_row; ++r)
        rows.push_back(r);
  }
  return rows;
}

int weight_of(const Timeline& timeline, const Row& row) {
  return std::max(1, timeline.processes[static_cast<std::size_t>(row.process)].members);
}

// Sweeps over the time of all rows at once and records what most of them do.
class Majority {
public:
  Majority(const Timeline& timeline, const std::vector<int>& processes) : timeline_(timeline) {
    for (const int r : telling_rows(timeline, processes)) {
      const Row& row = timeline.rows[static_cast<std::size_t>(r)];
      places_.push_back({row.first, row.last, weight_of(timeline, row)});
    }
    result_->timeline.processes.resize(1);
    result_->timeline.rows.resize(1);  // a summary row belongs to no track
  }

  std::shared_ptr<const GroupSummary> run(const std::atomic<bool>& cancelled) {
    for (std::size_t i = 0; i < places_.size(); ++i) push(i);
    std::size_t steps = 0;
    while (!next_.empty()) {
      if (++steps % 4096 == 0 && cancelled) return nullptr;
      const Time now = next_.top().first;
      while (!next_.empty() && next_.top().first == now) {
        const std::size_t i = next_.top().second;
        next_.pop();
        Place& place = places_[i];
        count(place.span, place.inside ? -place.weight : place.weight);
        if (place.inside) ++place.span;
        place.inside = !place.inside;
        push(i);
      }
      tell(now);
    }
    finish();
    return result_;
  }

private:
  struct Place {
    SpanId span = 0, last = 0;
    int weight = 1;
    bool inside = false;
  };
  // The content of a summary span: a name with its style and micro-batch.
  struct Told {
    std::uint32_t text = 0;  // index into the timeline's strings
    std::int32_t microbatch = -1;
    Style style = 0;
    auto operator<=>(const Told&) const = default;
  };

  struct Count {
    int ranks = 0;
    std::size_t order = 0;
  };

  void push(std::size_t i) {
    const Place& place = places_[i];
    if (place.span < place.last)
      next_.emplace(place.inside ? timeline_.spans.end[place.span] : timeline_.spans.begin[place.span], i);
  }

  void count(SpanId span, int by) {
    const Style style = style_of(timeline_.spans.kind[span], timeline_.spans.pass[span]);
    ranks_[style] += by;
    const Told told{timeline_.spans.name[span], timeline_.spans.microbatch[span], style};
    const auto at =
        now_.try_emplace(told, Count{0, seen_.try_emplace(told, seen_.size()).first->second}).first;
    at->second.ranks += by;
    if (at->second.ranks == 0) now_.erase(at);
  }

  // Picks the most frequent style, then its most frequent text; the first one seen wins a tie.
  std::optional<Told> most() const {
    const auto style = std::max_element(ranks_.begin(), ranks_.end());
    if (*style <= 0) return std::nullopt;
    const std::pair<const Told, Count>* best = nullptr;
    for (const auto& told : now_) {
      if (told.first.style != style - ranks_.begin()) continue;
      const int more = best == nullptr ? 1 : told.second.ranks - best->second.ranks;
      if (more > 0 || (more == 0 && told.second.order < best->second.order)) best = &told;
    }
    return best == nullptr ? std::nullopt : std::optional(best->first);
  }

  void tell(Time now) {
    const std::optional<Told> is = most();
    if (is == was_) return;
    SpanColumns& spans = result_->timeline.spans;
    if (was_) spans.end.push_back(now);
    was_ = is;
    if (!is) return;
    auto& strings = result_->timeline.strings;
    const auto [name, is_new] = names_.try_emplace(is->text, static_cast<std::uint32_t>(strings.size()));
    if (is_new) strings.push_back(timeline_.strings[is->text]);
    spans.begin.push_back(now);
    spans.name.push_back(name->second);
    spans.kind.push_back(kind_of(is->style));
    spans.pass.push_back(pass_of(is->style));
    spans.microbatch.push_back(is->microbatch);
  }

  void finish() {
    Timeline& timeline = result_->timeline;
    SpanColumns& spans = timeline.spans;
    spans.fill_unknown();
    timeline.rows[0].last = static_cast<SpanId>(spans.size());
    if (spans.size() > 0) {
      timeline.begin = spans.begin.front();
      timeline.end = spans.end.back();
    }
    result_->mipmap = RowMipmap(timeline, timeline.rows[0]);
  }

  const Timeline& timeline_;
  std::vector<Place> places_;
  std::array<std::int64_t, kStyles> ranks_{};
  std::map<Told, Count> now_;         // what the ranks do at the current time
  std::map<Told, std::size_t> seen_;  // number in order of first appearance
  // String index in the result, by that in the timeline.
  std::unordered_map<std::uint32_t, std::uint32_t> names_;
  using Boundary = std::pair<Time, std::size_t>;
  std::priority_queue<Boundary, std::vector<Boundary>, std::greater<>> next_;
  std::optional<Told> was_;
  std::shared_ptr<GroupSummary> result_ = std::make_shared<GroupSummary>();
};

}  // namespace

std::shared_ptr<const GroupSummary> group_summary(const Timeline& timeline, const std::vector<int>& processes,
                                                  const std::atomic<bool>& cancelled) {
  return Majority(timeline, processes).run(cancelled);
}

std::vector<Doing> doing_at(const Timeline& timeline, const std::vector<int>& processes, Time time) {
  std::map<std::uint32_t, int> ranks;  // by name
  for (const int r : telling_rows(timeline, processes)) {
    const Row& row = timeline.rows[static_cast<std::size_t>(r)];
    const SpanId span = timeline.at(row, time);
    if (span != kNoSpan) ranks[timeline.spans.name[span]] += weight_of(timeline, row);
  }
  std::vector<Doing> result;
  for (const auto& [name, count] : ranks) result.push_back({timeline.strings[name], count});
  std::stable_sort(result.begin(), result.end(),
                   [](const Doing& a, const Doing& b) { return a.ranks > b.ranks; });
  return result;
}

}  // namespace rehearse::gui
