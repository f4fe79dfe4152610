#include "gui/models/runs/view_state.hpp"

#include <algorithm>

namespace rehearse::gui {

namespace {

constexpr std::size_t kMostPlaces = 100;  // length of the history of back()

}  // namespace

void ViewState::set_visible(TimeRange range, bool remember) {
  if (range.end <= range.begin) return;
  const bool moves = range != visible_;
  visible_ = range;
  if (remember && (place_ < 0 || places_[static_cast<std::size_t>(place_)] != range)) {
    places_.resize(static_cast<std::size_t>(place_ + 1));
    places_.push_back(range);
    if (places_.size() > kMostPlaces) places_.erase(places_.begin());
    place_ = static_cast<int>(places_.size()) - 1;
  }
  if (moves) emit visible_changed();
}

void ViewState::set_whole(TimeRange range) {
  if (range == whole_) return;
  const bool saw_all = visible_ == whole_ || visible_.length() <= 0;
  whole_ = range;
  if (saw_all) {
    places_.clear();
    place_ = -1;
    set_visible(range);
  }
  emit whole_changed();
}

void ViewState::back() {
  if (!can_go_back()) return;
  set_visible(places_[static_cast<std::size_t>(--place_)], false);
}

void ViewState::forward() {
  if (!can_go_forward()) return;
  set_visible(places_[static_cast<std::size_t>(++place_)], false);
}

void ViewState::select(SpanRef span) {
  if (selected_ == span && !area_) return;
  selected_ = span;
  area_.reset();
  emit selection_changed();
}

void ViewState::select(Area area) {
  if (area_ == area) return;
  area_ = std::move(area);
  selected_.reset();
  emit selection_changed();
}

void ViewState::clear_selection() {
  if (!selected_ && !area_) return;
  selected_.reset();
  area_.reset();
  emit selection_changed();
}

void ViewState::set_search(const QString& text) {
  if (text == search_) return;
  search_ = text;
  emit search_changed();
}

void ViewState::set_filter(const QString& text) {
  if (text == filter_) return;
  filter_ = text;
  emit rows_changed();
}

void ViewState::set_grouping(Grouping grouping) {
  if (grouping == grouping_) return;
  grouping_ = grouping;
  emit rows_changed();
}

void ViewState::show_critical_path(bool show) {
  if (show == critical_path_) return;
  critical_path_ = show;
  emit marks_changed();
}

void ViewState::show_flows(bool show) {
  if (show == flows_) return;
  flows_ = show;
  emit marks_changed();
}

void ViewState::show_counters(bool show) {
  if (show == counters_) return;
  counters_ = show;
  emit rows_changed();
}

namespace {

// Moves `what` to `into`. Returns whether it was not there before.
template <typename T>
bool move_between(const T& what, std::set<T>& into, std::set<T>& out_of) {
  out_of.erase(what);
  return into.insert(what).second;
}

}  // namespace

void ViewState::set_collapsed(ProcessRef process, bool collapsed) {
  if (collapsed ? move_between(process, collapsed_, expanded_) : move_between(process, expanded_, collapsed_))
    emit rows_changed();
}

void ViewState::set_all_collapsed(const std::set<ProcessRef>& collapsed,
                                  const std::set<ProcessRef>& expanded) {
  if (collapsed == collapsed_ && expanded == expanded_) return;
  collapsed_ = collapsed;
  expanded_ = expanded;
  emit rows_changed();
}

void ViewState::set_collapsed(const GroupRef& group, bool collapsed) {
  if (collapsed ? move_between(group, collapsed_groups_, expanded_groups_)
                : move_between(group, expanded_groups_, collapsed_groups_))
    emit rows_changed();
}

void ViewState::set_all_collapsed(const std::set<GroupRef>& collapsed, const std::set<GroupRef>& expanded) {
  if (collapsed == collapsed_groups_ && expanded == expanded_groups_) return;
  collapsed_groups_ = collapsed;
  expanded_groups_ = expanded;
  emit rows_changed();
}

void ViewState::set_pinned(ProcessRef process, bool pinned) {
  const auto at = std::find(pinned_.begin(), pinned_.end(), process);
  if ((at != pinned_.end()) == pinned) return;
  if (pinned)
    pinned_.push_back(process);
  else
    pinned_.erase(at);
  emit rows_changed();
}

void ViewState::set_bookmarks(std::vector<Bookmark> bookmarks) {
  if (bookmarks == bookmarks_) return;
  bookmarks_ = std::move(bookmarks);
  emit marks_changed();
}

void ViewState::set_cursor(std::optional<Time> time) {
  if (time == cursor_) return;
  cursor_ = time;
  emit cursor_changed();
}

void ViewState::forget_run(int run) {
  if (selected_ && selected_->run == run) clear_selection();
  if (area_ &&
      std::any_of(area_->rows.begin(), area_->rows.end(), [&](const auto& r) { return r.first == run; }))
    clear_selection();
  for (auto* refs : {&collapsed_, &expanded_})
    std::erase_if(*refs, [&](const ProcessRef& p) { return p.first == run; });
  for (auto* refs : {&collapsed_groups_, &expanded_groups_})
    std::erase_if(*refs, [&](const GroupRef& g) { return g.run == run; });
  std::erase_if(pinned_, [&](const ProcessRef& p) { return p.first == run; });
}

}  // namespace rehearse::gui
