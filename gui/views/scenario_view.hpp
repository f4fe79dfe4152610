// Scenarios to predict: chosen in a form or written as text, run, searched for their best plan, and changed
// again.
#pragma once

#include <QLabel>
#include <QMap>
#include <QPointer>
#include <QSplitter>
#include <QTabBar>
#include <QToolBar>
#include <QWidget>
#include <memory>
#include <vector>

#include "gui/models/command_runner.hpp"
#include "gui/models/scenario_check.hpp"
#include "gui/models/scenario_draft.hpp"
#include "gui/models/session.hpp"
#include "gui/models/view_state.hpp"

namespace rehearse::gui {

class ScenarioEditor;
class ScenarioForm;

class ScenarioView : public QWidget {
  Q_OBJECT
public:
  ScenarioView(Session& session, ViewState& state, QWidget* parent = nullptr);
  ~ScenarioView() override;

  void open_scenario(const QString& path);  // from a file, which Save writes to
  // A draft without a file; `folder`: where file names in it begin.
  void set_text(const QString& text, const QString& name, const QString& folder = {});
  bool has_unsaved_changes() const;  // in any draft that is open
  bool has_only_template() const { return drafts_.size() == 1 && draft_is_untouched(); }
  // The text of a run as a draft named "NAME (2)". Nothing if the run's scenario is not known.
  void duplicate_run(int id);
  void run();   // what is shown; if it is known to be wrong, goes there instead
  void plan();  // searches the best plan for what is shown
  // Runs a scenario that is no draft.
  void run_text(const QString& text, const QString& name, const QString& folder);
  void cancel();  // the run under way and those that wait

  ScenarioDraft& draft() const { return *drafts_[static_cast<std::size_t>(current_)]; }
  CommandRunner& runner() { return runner_; }
  ScenarioEditor& editor() { return *editor_; }
  ScenarioForm& form() { return *form_; }

signals:
  void trace_made(const QString& trace_path, const QString& name);
  void plans_made(const QString& path, const QString& name);  // of the file of plans; what was planned
  void message(const QString& text);                          // of one line

protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

private:
  void build_actions();
  void build_widgets();
  QAction* add(const char* text, const char* menu, const QKeySequence& keys, const char* tip,
               void (ScenarioView::*slot)());
  void fill_templates();

  void add_draft(std::unique_ptr<ScenarioDraft> draft);
  void show_draft(int place);
  void close_draft(int place);
  bool draft_is_untouched() const;  // the first one is as new_draft() made it
  void tell_drafts();
  QString unused_name(const QString& name, bool of_runs) const;

  void new_draft();
  void choose_file();
  void save();
  void save_as();
  void close_current() { close_draft(current_); }
  void reopen();
  void duplicate_current();
  void undo() { draft().document().undo(); }
  void redo() { draft().document().redo(); }
  void go_to_error();

  void start(ScenarioDraft* draft, const RunRequest& request);  // draft: null, a scenario that is none
  void check_draft();
  void show_check();
  void show_error(int line, int column, const QString& what);
  void show_progress();
  void run_ended(const RunOutcome& outcome);
  void lay_out();

  Session& session_;
  std::vector<std::unique_ptr<ScenarioDraft>> drafts_, closed_;
  int current_ = -1;
  ScenarioCheck check_;
  CommandRunner runner_;
  struct Running {
    QPointer<ScenarioDraft> draft;
    QString text, name;
  };
  QMap<int, Running> running_;  // by id of the run
  int error_line_ = 0, error_column_ = 0;
  QString result_;  // of the last run, in one line
  bool narrow_ = false;

  QAction *run_, *plan_, *cancel_, *duplicate_, *new_, *open_, *save_, *save_as_, *close_, *reopen_, *undo_,
      *redo_, *error_;
  QAction* more_;
  QMenu* templates_;
  QToolBar* tools_;
  QTabBar *tabs_, *sides_;  // sides: form or text, where there is no room for both
  QSplitter* splitter_;
  ScenarioForm* form_;
  ScenarioEditor* editor_;
  QLabel *told_, *progress_;
};

}  // namespace rehearse::gui
