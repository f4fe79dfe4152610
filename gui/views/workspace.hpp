// Where the views stand: the side, the timeline above the tabs, and a start page in their place; one view
// alone, or in windows of their own.
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
  // Buttons at the end of the tabs.
  void set_tab_commands(const QList<QAction*>& actions);

  // Brings the view to the front; a detached view brings its window.
  void show_view(QWidget* view);
  QWidget* open_tab() const;  // null: all tabs are detached
  // The view that the user works with: it had the focus last, or its tab was clicked since.
  QWidget* current_view() const;

  // Beside the side's views; any view that is shown takes its place.
  void show_start_page(bool shown);
  bool shows_start_page() const { return start_shown_; }
  // Without a run the tabs have the timeline's room.
  void set_has_runs(bool has_runs);

  void toggle(Part part);  // switches it on wherever it is not seen
  bool shows(Part part) const;

  // Gives the view the room of all others; null restores all.
  void maximise(QWidget* view);
  QWidget* maximised() const { return maximised_; }

  // Closing its window brings a view back.
  void detach(QWidget* view);
  void attach(QWidget* view);
  void attach_all();
  bool is_detached(const QWidget* view) const { return window_of(view) != nullptr; }

  // Makes the tabs at least this high until the change is undone.
  void give_tabs(int height);
  void take_back_from_tabs();

  // Sizes, the open tab and the visible parts.
  void remember(QSettings& settings) const;
  void restore(QSettings& settings);

signals:
  void changed();  // what is shown

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
  int index_among(const QWidget* view, Place place) const;  // of those that stand here
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
  bool timeline_wanted_ = false;    // though there is no run
  bool both_shown_ = false;         // timeline and tabs
  QList<int> heights_;              // of both
  QList<int> heights_before_tabs_;  // gave room to tabs; empty: they have been taken none
};

}  // namespace rehearse::gui
