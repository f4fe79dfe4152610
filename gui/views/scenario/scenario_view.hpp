// Edits scenarios in a form or as text, runs them, and searches for their best plans.
#pragma once

#include <QLabel>
#include <QMap>
#include <QPointer>
#include <QSplitter>
#include <QTabBar>
#include <QToolBar>
#include <QWidget>
#include <functional>
#include <memory>
#include <vector>

#include "gui/models/runs/session.hpp"
#include "gui/models/runs/view_state.hpp"
#include "gui/models/scenario/command_runner.hpp"
#include "gui/models/scenario/scenario_check.hpp"
#include "gui/models/scenario/scenario_draft.hpp"
#include "gui/models/session/session_file.hpp"
#include "gui/views/parts/ask_to_save.hpp"

namespace rehearse::gui {

class ScenarioEditor;
class ScenarioForm;

class ScenarioView : public QWidget {
  Q_OBJECT
public:
  ScenarioView(Session& session, ViewState& state, QWidget* parent = nullptr);
  ~ScenarioView() override;

  void open_scenario(const QString& path);  // Save writes to the same file
  // Adds a draft without a file; relative file names in it start at `folder`.
  void set_text(const QString& text, const QString& name, const QString& folder = {});
  bool has_unsaved_changes() const;  // in any open draft
  bool has_only_template() const { return drafts_.size() == 1 && draft_is_untouched(); }
  // Asks what to do with changes that are in no file, and saves them on request. Returns false if the user
  // cancels.
  bool may_leave();
  // Replaces the question to the user; `ask` receives the names of the scenarios.
  void set_question(std::function<Unsaved(const QStringList&)> ask) { ask_ = std::move(ask); }

  // The drafts as a session file stores them; call keep_drafts() once the file has been written.
  std::vector<SavedDraft> saved_drafts();
  // Drafts that only repeat the scenario of a run are left out; current_draft() is -1 for them.
  int current_draft() const;
  void keep_drafts();
  // Replaces all open drafts. Returns an error message for each draft that could not be opened.
  QStringList restore_drafts(const std::vector<SavedDraft>& saved, int current);
  void show_restored();  // call when the session's runs have been opened: shows the draft that was current

  // Opens the scenario of a run as another draft, if it is known.
  void duplicate_run(int id);
  // Shows the scenario of a run and makes changes such as "strategy.tensor=4" in it.
  void change_run(int id, const QStringList& settings);
  void run();   // runs the shown draft, or goes to its error if it is known to be wrong
  void plan();  // searches the best plan for the shown draft
  // Runs a scenario that is not a draft.
  void run_text(const QString& text, const QString& name, const QString& folder,
                const QStringList& settings = {});
  void cancel();  // cancels the current run and those in the queue

  ScenarioDraft& draft() const { return *drafts_[static_cast<std::size_t>(current_)]; }
  CommandRunner& runner() { return runner_; }
  ScenarioEditor& editor() { return *editor_; }
  ScenarioForm& form() { return *form_; }

signals:
  void trace_made(const QString& trace_path, const QString& name);
  void plans_made(const QString& path, const QString& name);  // path of the plan file, name of the scenario
  void message(const QString& text);                          // a single line

protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

private:
  void build_actions();
  void build_widgets();
  QAction* add(const char* text, const char* menu, const QKeySequence& keys, const char* tip,
               void (ScenarioView::*slot)());
  void fill_templates();

  void connect_draft(ScenarioDraft& draft);
  void add_draft(std::unique_ptr<ScenarioDraft> draft);
  void replace_draft(int place, std::unique_ptr<ScenarioDraft> draft);
  void show_draft(int place);
  void close_draft(int place);  // without asking
  void ask_and_close(int place);
  bool ask_about(const std::vector<int>& places);
  bool draft_is_untouched() const;  // it is the only draft and as new_draft() made it
  void tell_drafts();
  QString unused_name(const QString& name, bool of_runs) const;

  void new_draft();
  void choose_file();
  void save() { save_current(); }
  void save_as() { save_current_as(); }
  bool save_current();  // false if it was not saved
  bool save_current_as();
  bool tell_saved(const QString& path, const QString& why_not);
  void close_current() { ask_and_close(current_); }
  void reopen();
  void duplicate_current();
  void undo() { draft().document().undo(); }
  void redo() { draft().document().redo(); }
  void follow_undo();
  void find_setting();
  void go_to_error();

  // The form shows the scenario of the current run, unless that would hide unsaved changes.
  void follow_current();
  void follow_changed(int run);  // renamed, or read again
  bool keeps_shown(const Run& run, bool arrived) const;
  int draft_of(const Run& run);  // place of the draft that shows its scenario; -1: none
  void show_run(const Run& run);
  void take_run();
  void tell_run();

  // `draft` is null if the scenario is not a draft.
  void start(ScenarioDraft* draft, const RunRequest& request);
  void check_draft();
  void show_check();
  void show_error(int line, int column, const QString& what);
  void show_progress();
  void run_ended(const RunOutcome& outcome);
  void lay_out();

  Session& session_;
  std::vector<std::unique_ptr<ScenarioDraft>> drafts_, closed_;
  int current_ = -1;
  std::function<Unsaved(const QStringList&)> ask_ = [this](const QStringList& names) {
    return ask_to_save(*window(), names);
  };
  ScenarioCheck check_;
  CommandRunner runner_;
  struct Running {
    QPointer<ScenarioDraft> draft;
    QString text, name;
  };
  QMap<int, Running> running_;        // by id of the command
  QMap<QString, Running> made_;       // by path of a trace that is not open yet
  int newest_run_ = 0;                // Run::id of the newest run that has been current
  QPointer<ScenarioDraft> restored_;  // the current draft of a session; null: it followed a run
  // The last text whose run was refused, and why. The check of that text may find nothing wrong.
  struct Refusal {
    QString text, folder, why;
    int line = 0, column = 0;
  } refusal_;
  int error_line_ = 0, error_column_ = 0;
  QString result_;  // outcome of the last run, in one line
  bool narrow_ = false;

  QAction *run_, *plan_, *cancel_, *duplicate_, *new_, *open_, *save_, *save_as_, *close_, *reopen_, *undo_,
      *redo_, *find_, *error_, *take_;
  QAction* more_;
  QMenu* templates_;
  QToolBar* tools_;
  QTabBar *tabs_, *sides_;  // sides_: form or text, if there is no room for both
  QSplitter* splitter_;
  ScenarioForm* form_;
  ScenarioEditor* editor_;
  QLabel *told_, *progress_;
  QWidget* whose_row_;  // which run's scenario is shown
  QLabel* whose_;
};

}  // namespace rehearse::gui
