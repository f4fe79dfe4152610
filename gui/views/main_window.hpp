// The window: runs and the scenario at the left, timelines above, and below them what they mean.
#pragma once

#include <QMainWindow>
#include <QStringList>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gui/models/loader.hpp"
#include "gui/models/session.hpp"
#include "gui/models/session_file.hpp"
#include "gui/views/appearance.hpp"

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

  // Traces, scenarios (.toml), tables (.csv), plans (.json) and sessions (.rehearse), told apart by name and
  // content. What cannot be opened is told in messages() and in notices(). Scenarios are run at once if
  // `run`.
  void open_files(const QStringList& paths, bool run = false);
  void save_session(const QString& path);  // RunError
  bool show_view(const QString& name);     // false: no such view
  QWidget* view(const QString& name) const;
  static QStringList view_names();
  void set_theme(Theme theme);
  // As the window was left the last time, or, the first time, as the screen allows; and what is left is kept
  // when it is closed.
  void restore_layout();
  void never_ask();  // what is not saved is lost

  // Nothing is being read or run, and every view has what it shows.
  bool settled() const;
  // What was told in the status bar, the last one last; failures() of them tell what could not be done.
  const QStringList& notices() const { return notices_; }
  int failures() const { return failures_; }
  const MessageBar& messages() const { return *messages_; }  // what could not be done, over the views

  // What "Export" and "Copy view as picture" write: the view with which somebody works, by focus or by tab,
  // and its table, or else that of the open tab; null: there is none.
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
  // main_window.cpp
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
  // main_window_files.cpp
  bool open_scenario(const QString& path);
  void show_results(const QString& path, const std::shared_ptr<ResultFile>& results);
  void run_plans(const std::vector<PlanScenario>& scenarios);
  void change_plan(
      const PlanScenario& scenario);  // as a draft without a file: a plan's may be a temporary one
  std::unique_ptr<ScenarioDraft> read_scenario(const QString& path);  // null: it tells why not
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
  void attempt(const std::function<void()>& action);  // tells what it throws

  Session session_;
  ViewState state_;
  Loader loader_;
  struct Named {
    QString name;  // for --view: "timeline"
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
  int newest_run_ = 0;  // Run::id
  QString session_path_;
  std::map<int, SavedSession> restoring_;  // by the loader's number
  std::map<int, QString> examples_;        // by the loader's number: the view to show
  std::map<QString, QString> planned_;     // by file of plans that was made here, the scenario's name
};

}  // namespace rehearse::gui
