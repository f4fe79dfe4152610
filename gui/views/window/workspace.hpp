// Arranges the views: side views, the timeline above the tabs, and a start page that can replace both; any
// view can be maximised or detached into a separate window.
#pragma once

#include <QPointer>
#include <QWidget>
#include <memory>
#include <vector>

class QSettings;
class QSplitter;
class QStackedWidget;
class QTabWidget;
class QToolButton;

namespace rehearse::gui {

class DetachedWindow;

class Workspace : public QWidget {
  Q_OBJECT
public:
  enum class Part { side, timeline, tabs };

  Workspace(QWidget* timeline, QWidget* start_page, QWidget* parent = nullptr);
  ~Workspace() override;
  void add_to_side(QWidget* view);
  void add_tab(QWidget* view, const QString& title);
  // Adds buttons after the tabs.
  void set_tab_commands(const QList<QAction*>& actions);

  // Brings the view to the front, or its window if it is detached.
  void show_view(QWidget* view);
  QWidget* open_tab() const;  // null if all tabs are detached
  // Returns the view that the user works with: the last one that had the focus or whose tab was clicked.
  QWidget* current_view() const;

  // Shows the start page in place of timeline and tabs; showing any of their views replaces it again.
  void show_start_page(bool shown);
  bool shows_start_page() const { return start_shown_; }
  // Without a run, the tabs also get the timeline's room.
  void set_has_runs(bool has_runs);

  void toggle(Part part);  // hides a visible part; shows one that is not visible for any reason
  bool shows(Part part) const;

  // Gives the view all the room; null restores the others.
  void maximise(QWidget* view);
  QWidget* maximised() const { return maximised_; }

  // Moves the view into a separate window; closing that window moves it back.
  void detach(QWidget* view);
  void attach(QWidget* view);
  void attach_all();
  bool is_detached(const QWidget* view) const { return window_of(view) != nullptr; }

  // Makes the tabs at least `height` pixels high until take_back_from_tabs().
  void give_tabs(int height);
  void take_back_from_tabs();

  // Saves and restores the sizes, the open tab and the visible parts.
  void remember(QSettings& settings) const;
  void restore(QSettings& settings);

signals:
  void changed();  // the visible views have changed

protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

private:
  enum class Place { side, timeline, tabs };
  struct Home {
    QPointer<QWidget> view;
    QString title;
    Place place;
  };
  const Home* home_of(const QWidget* view) const;
  DetachedWindow* window_of(const QWidget* view) const;
  bool stands_here(const QWidget* view) const;
  int index_among(const QWidget* view, Place place) const;  // counts views that are not detached
  void apply();
  void follow_work();
  void work_with(QWidget* widget);

  std::vector<Home> homes_;
  QPointer<QWidget> timeline_, maximised_, worked_with_;
  QWidget* start_page_;
  QSplitter *all_, *side_, *right_;
  QStackedWidget* stack_;
  QTabWidget* tabs_;
  std::vector<DetachedWindow*> windows_;
  bool side_on_ = true, timeline_on_ = true, tabs_on_ = true;
  bool start_shown_ = false, has_runs_ = false;
  bool timeline_wanted_ = false;    // shown even if there is no run
  bool both_shown_ = false;         // timeline and tabs
  QList<int> heights_;              // of timeline and tabs
  QList<int> heights_before_tabs_;  // before give_tabs(); empty if it is not in effect
};

}  // namespace rehearse::gui
