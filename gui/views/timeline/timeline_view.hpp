// Shows all shown runs on one time axis, with controls to search, filter and group them.
#pragma once

#include <QWidget>
#include <functional>

#include "gui/views/timeline/timeline_scene.hpp"

class QComboBox;
class QLabel;
class QLineEdit;
class QScrollBar;
class QStackedLayout;
class QToolButton;

namespace rehearse::gui {

class Minimap;
class TimelineAxis;
class TimelineCanvas;
class TimelineLabels;
class TimelineLegend;

class TimelineView : public QWidget {
  Q_OBJECT
public:
  TimelineView(Session& session, ViewState& state, QWidget* parent = nullptr);
  TimelineScene& scene() { return scene_; }
  TimelineCanvas& canvas() { return *canvas_; }
  TimelineLabels& labels() { return *labels_; }
  Minimap& minimap() { return *minimap_; }
  TimelineLegend& legend() { return *legend_; }
  TimelineAxis& axis() { return *axis_; }
  QLineEdit& search_field() { return *search_; }
  QLineEdit& filter_field() { return *filter_; }
  QLabel& hit_label() { return *hits_; }
  // Selects the rows of a rank over the run's analysed step, and scrolls to them.
  void select_rank(int run, int process);

protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

private:
  QWidget* make_tool_line();
  QWidget* make_tracks();
  void make_actions();
  void follow_state();
  void tell_hits();
  void set_scroll_bar();
  void show_menu(const TimelineScene::Place& place, QPoint global);

  // ----- actions
  void zoom(double factor);
  void pan(double share);
  void move_vertically(int by);
  void zoom_to_selection();
  void step_on_row(int by);
  void step_on_path(int by);
  void follow_flow(bool back);
  void bookmark(bool range);
  void remove_bookmark();
  void span_to_area();
  void select_all();
  void toggle_track();
  void select_all_named(SpanRef span);
  std::optional<ViewState::ProcessRef> current_process() const;
  void pin_current();
  void collapse(bool collapsed, bool all);
  void collapse_others(ViewState::ProcessRef process);
  int current_line() const;
  bool is_collapsed(ViewState::ProcessRef process) const;
  std::shared_ptr<const RankGroup> current_group() const;
  void toggle_group();
  void collapse_groups(bool collapsed);  // all groups
  void copy_selection();
  void select_and_reveal(SpanRef span);

  Session& session_;
  ViewState& state_;
  TimelineScene scene_;
  QLineEdit *search_ = nullptr, *filter_ = nullptr;
  QLabel* hits_ = nullptr;
  QToolButton *previous_ = nullptr, *next_ = nullptr;
  QComboBox* grouping_ = nullptr;
  QScrollBar* bar_ = nullptr;
  QStackedLayout* stack_ = nullptr;
  Minimap* minimap_ = nullptr;
  TimelineAxis* axis_ = nullptr;
  TimelineCanvas* canvas_ = nullptr;
  TimelineLabels* labels_ = nullptr;
  TimelineLegend* legend_ = nullptr;
  QAction *path_action_ = nullptr, *flows_action_ = nullptr, *counters_action_ = nullptr;
  std::vector<QAction*> group_actions_;
  QAction *back_action_ = nullptr, *forward_action_ = nullptr;
  QAction *next_hit_action_ = nullptr, *previous_hit_action_ = nullptr;
};

}  // namespace rehearse::gui
