// Provides the main window: runs and the scenario on the left, timelines on top, and explanatory tabs below.
#pragma once

#include <QMainWindow>
#include <QStringList>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gui/models/runs/session.hpp"
#include "gui/models/session/loader.hpp"
#include "gui/models/session/session_file.hpp"
#include "gui/views/parts/appearance.hpp"

class QAbstractItemView;
class QActionGroup;
class QLabel;
class QProgressBar;
class QToolButton;

namespace rehearse::gui {

class AccuracyView;
class MessageBar;
class PlanView;
struct PlanScenario;
class RanksView;
class RunsView;
class ScalingView;
class ScenarioDraft;
class ScenarioView;
class StartPage;
struct Example;
class TimelineView;
class WhyView;
class Workspace;

class MainWindow : public QMainWindow {
  Q_OBJECT
public:
  MainWindow();
  ~MainWindow() override;

  // Opens traces, scenarios (.toml), tables (.csv), plans (.json) and sessions (.rehearse), distinguished by
  // name and content. Reports failures in messages() and notices(). With `run`, also runs the scenarios.
  void open_files(const QStringList& paths, bool run = false);
  void save_session(const QString& path);  // throws RunError if it cannot be written
  bool show_view(const QString& name);     // false if there is no such view
  QWidget* view(const QString& name) const;
  static QStringList view_names();
  void set_theme(Theme theme);
  // Restores the saved layout, or fits the window to the screen on the first start; the layout is then saved
  // on close.
  void restore_layout();
  void never_ask();  // discards unsaved changes without asking

  // Returns whether nothing is being read, run or computed, so that every view shows its final content.
  bool settled() const;
  // All messages of the status bar, oldest first; failures() counts what could not be done.
  const QStringList& notices() const { return notices_; }
  int failures() const { return failures_; }
  const MessageBar& messages() const { return *messages_; }  // errors, shown above the views

  // The view that "Export" and "Copy view as picture" write: the one in use, by focus or by tab.
  // exported_table() returns a table in it, else one in the open tab; null if there is none.
  QWidget* exported_view() const;
  QAbstractItemView* exported_table() const;

  Session& session() { return session_; }
  ViewState& state() { return state_; }
  Loader& loader() { return loader_; }
  Workspace& workspace() { return *workspace_; }

protected:
  void keyPressEvent(QKeyEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

private:
  // Defined in main_window.cpp.
  void make_views();
  void make_actions();
  void make_themes();
  void make_menus();
  void make_status_bar();
  void make_layout_actions();
  QAction* add_action(const char* in, const QString& text, const QList<QKeySequence>& keys,
                      const QString& what, std::function<void()> act);
  void make_start_page();
  void follow_session();
  void follow_plans();
  void follow_advice();
  bool event(QEvent* event) override;
  void follow_sweeps();
  void show_step();
  void tell(const QString& message);
  void refuse(const QString& message);
  void show_position();
  // Defined in main_window_files.cpp.
  bool open_scenario(const QString& path);
  void show_results(const QString& path, const std::shared_ptr<ResultFile>& results);
  void run_plans(const std::vector<PlanScenario>& scenarios);
  // Opens the plan as a draft without a file, because a plan's file may be temporary.
  void change_plan(const PlanScenario& scenario);
  // Returns null after reporting why the file cannot be read.
  std::unique_ptr<ScenarioDraft> read_scenario(const QString& path);
  void choose_files();
  void open_example(const Example& example);
  void show_example(const Example& example);
  void open_session(const QString& path);
  void choose_session_file();
  void export_picture();
  void export_table();
  void copy_picture();
  void remember_file(const QString& path);
  void fill_recent_menu();
  void attempt(const std::function<void()>& action);  // reports the exception that it throws

  Session session_;
  ViewState state_;
  Loader loader_;
  struct Named {
    QString name;  // as in --view: "timeline"
    QWidget* view;
  };
  std::vector<Named> views_;
  TimelineView* timeline_ = nullptr;
  RunsView* runs_ = nullptr;
  ScenarioView* scenario_ = nullptr;
  ScalingView* scaling_ = nullptr;
  AccuracyView* accuracy_ = nullptr;
  PlanView* plan_ = nullptr;
  RanksView* ranks_ = nullptr;
  WhyView* why_ = nullptr;
  Workspace* workspace_ = nullptr;
  StartPage* start_ = nullptr;
  QLabel* position_ = nullptr;
  QProgressBar* progress_ = nullptr;
  MessageBar* messages_ = nullptr;
  QToolButton* cancel_ = nullptr;
  QMenu* recent_ = nullptr;
  QActionGroup* themes_ = nullptr;
  QAction* quit_ = nullptr;
  QAction *open_ = nullptr, *commands_ = nullptr, *alone_ = nullptr, *detach_ = nullptr;
  bool keeps_layout_ = false, has_results_ = false;
  Theme theme_ = Theme::light;
  QStringList notices_;
  int failures_ = 0;
  int newest_run_ = 0;  // greatest Run::id so far
  struct {
    int run = 0;
    TimeRange visible;  // when it was shown
  } begun_;             // the latest run of which only a part was read at first
  QString session_path_;
  std::map<int, SavedSession> restoring_;  // by number of the loader's request
  std::map<int, QString> examples_;        // view to show, by number of the loader's request
  std::map<QString, QString> planned_;     // name of the scenario, by path of a plan file made in this window
};

}  // namespace rehearse::gui
