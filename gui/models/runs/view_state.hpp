// Holds the state that all views share: the visible time, the selection, and what is shown.
#pragma once

#include <QObject>
#include <QString>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gui/models/timeline/time_scale.hpp"

namespace rehearse::gui {

struct SpanRef {
  int run = 0;  // Run::id
  SpanId span = kNoSpan;
  bool operator==(const SpanRef&) const = default;
};

// A time range on some rows.
struct Area {
  TimeRange range;
  std::vector<std::pair<int, int>> rows;  // Run::id and row of its timeline; ascending
  bool operator==(const Area&) const = default;
};

struct Bookmark {
  TimeRange range;  // a moment has begin == end
  QString text;
  bool operator==(const Bookmark&) const = default;
};

// kind: ranks with similar behavior, if there are several
enum class Grouping { none, node, stage, role, kind };
inline constexpr std::array<std::string_view, 5> kGroupingNames = {"none", "node", "stage", "role", "kind"};

// A group of ranks of a run (Run::id), with the name they share, such as "3".
struct GroupRef {
  int run = 0;
  Grouping grouping = Grouping::none;
  std::string name;
  auto operator<=>(const GroupRef&) const = default;
};

// Times are those of a run's timeline minus its alignment (Run::aligned), so that all runs share one axis.
class ViewState : public QObject {
  Q_OBJECT
public:
  using QObject::QObject;

  // ----- the visible time; `remember`: add it to the history of back()
  TimeRange visible() const { return visible_; }
  TimeRange whole() const { return whole_; }
  void set_visible(TimeRange range, bool remember = true);
  // Sets the range shown by fit(); changes the visible range only if that showed everything.
  void set_whole(TimeRange range);
  void fit() { set_visible(whole_); }
  void back();
  void forward();
  bool can_go_back() const { return place_ > 0; }
  bool can_go_forward() const { return place_ + 1 < static_cast<int>(places_.size()); }

  // ----- the selection: a span, an area, or nothing
  const std::optional<SpanRef>& selected() const { return selected_; }
  const std::optional<Area>& area() const { return area_; }
  void select(SpanRef span);
  void select(Area area);
  void clear_selection();

  // ----- what is highlighted and filtered
  const QString& search() const { return search_; }
  void set_search(const QString& text);
  const QString& filter() const { return filter_; }  // shows tracks if their name or their rank's contains it
  void set_filter(const QString& text);
  Grouping grouping() const { return grouping_; }
  void set_grouping(Grouping grouping);
  bool shows_critical_path() const { return critical_path_; }
  void show_critical_path(bool show);
  bool shows_flows() const { return flows_; }
  void show_flows(bool show);
  bool shows_counters() const { return counters_; }
  void show_counters(bool show);
  // Ranks that the user collapsed or expanded, by run (Run::id) and process of its timeline; the layout
  // decides about all others.
  using ProcessRef = std::pair<int, int>;
  const std::set<ProcessRef>& collapsed() const { return collapsed_; }
  const std::set<ProcessRef>& expanded() const { return expanded_; }
  void set_collapsed(ProcessRef process, bool collapsed);
  void set_all_collapsed(const std::set<ProcessRef>& collapsed, const std::set<ProcessRef>& expanded = {});
  const std::set<GroupRef>& collapsed_groups() const { return collapsed_groups_; }
  const std::set<GroupRef>& expanded_groups() const { return expanded_groups_; }
  void set_collapsed(const GroupRef& group, bool collapsed);
  void set_all_collapsed(const std::set<GroupRef>& collapsed, const std::set<GroupRef>& expanded = {});
  const std::vector<ProcessRef>& pinned() const { return pinned_; }  // shown first, in this order
  void set_pinned(ProcessRef process, bool pinned);

  // ----- bookmarks
  const std::vector<Bookmark>& bookmarks() const { return bookmarks_; }
  void set_bookmarks(std::vector<Bookmark> bookmarks);

  // ----- the time under the mouse, for all tracks
  std::optional<Time> cursor() const { return cursor_; }
  void set_cursor(std::optional<Time> time);

  // Drops everything that refers to a removed run.
  void forget_run(int run);

signals:
  void visible_changed();
  void whole_changed();
  void selection_changed();
  void search_changed();
  void rows_changed();   // filter, grouping, collapsed, pinned, counters
  void marks_changed();  // critical path, arrows, bookmarks
  void cursor_changed();

private:
  TimeRange visible_, whole_;
  std::vector<TimeRange> places_;
  int place_ = -1;
  std::optional<SpanRef> selected_;
  std::optional<Area> area_;
  QString search_, filter_;
  Grouping grouping_ = Grouping::kind;
  bool critical_path_ = false, flows_ = true, counters_ = true;
  std::set<ProcessRef> collapsed_, expanded_;
  std::set<GroupRef> collapsed_groups_, expanded_groups_;
  std::vector<ProcessRef> pinned_;
  std::vector<Bookmark> bookmarks_;
  std::optional<Time> cursor_;
};

}  // namespace rehearse::gui
