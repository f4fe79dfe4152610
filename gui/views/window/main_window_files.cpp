// Reads and writes files of the window: opening by kind, sessions, recent files, pictures and tables.
#include <QApplication>
#include <QClipboard>
#include <QDateTime>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QMimeData>
#include <QSettings>
#include <QStatusBar>
#include <QTableView>
#include <QTreeView>
#include <algorithm>

#include "gui/models/session/recent_files.hpp"
#include "gui/views/parts/export.hpp"
#include "gui/views/scenario/scenario_view.hpp"
#include "gui/views/session/example_card.hpp"
#include "gui/views/session/start_page.hpp"
#include "gui/views/tables/accuracy_view.hpp"
#include "gui/views/tables/plan_view.hpp"
#include "gui/views/tables/scaling_view.hpp"
#include "gui/views/timeline/timeline_view.hpp"
#include "gui/views/trace/record_dialog.hpp"
#include "gui/views/window/main_window.hpp"
#include "gui/views/window/message_bar.hpp"
#include "gui/views/window/workspace.hpp"

namespace rehearse::gui {

namespace {

constexpr const char* kCut = "; it is cropped: a picture is at most 6,000 pixels wide and 8,000 high";
constexpr int kPlanHeight = 600;  // minimum height of the tabs, in pixels
const char* const kOpened =
    "All supported files (*.json *.json.gz *.toml *.csv *.rehearse);;Traces (*.json *.json.gz);;"
    "Scenarios (*.toml);;Sweeps and validations (*.csv);;Plans (*.json);;Sessions (*.rehearse);;All files "
    "(*)";

bool ends_in(const QString& path, const char* ending) {
  return path.endsWith(QLatin1String(ending), Qt::CaseInsensitive);
}

}  // namespace

void MainWindow::attempt(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    refuse(QString::fromStdString(error.what()));
  }
}

void MainWindow::open_files(const QStringList& paths, bool run) {
  timeline_->setFocus();
  QStringList traces;
  for (const QString& path : paths) {
    if (ends_in(path, ".rehearse")) {
      attempt([&] { open_session(path); });
    } else if (ends_in(path, ".toml")) {
      if (!open_scenario(path)) continue;
      show_view("scenario");
      if (run) scenario_->run();
    } else if (ends_in(path, ".csv") || (ends_in(path, ".json") && is_plan_file(path.toStdString()))) {
      loader_.open_results(path);
      continue;  // added to the recent files once it has been read
    } else {
      traces << path;
      continue;
    }
    remember_file(path);
  }
  if (traces.isEmpty()) return;
  loader_.open(traces);
  for (const QString& path : traces) remember_file(path);
}

void MainWindow::show_results(const QString& path, const std::shared_ptr<ResultFile>& results) {
  if (auto* sweep = std::get_if<ReadSweep>(results.get())) {
    scaling_->show_sweep(path, std::move(*sweep));
    show_view("scaling");
  } else if (auto* plans = std::get_if<ReadPlans>(results.get())) {
    const auto planned = planned_.find(path);
    plan_->show_plans(path, std::move(*plans), planned == planned_.end() ? QString() : planned->second);
    // Two plots and a table need more room than other tabs; run_plans() returns it to the timelines.
    workspace_->give_tabs(std::max(kPlanHeight, workspace_->height() / 2));
    show_view("plan");
  } else {
    accuracy_->show_validation(path, std::get<AccuracyTable>(*results));
    show_view("accuracy");
  }
  has_results_ = true;
  // Results of searches in this window are in its temporary folder, so they are not recent files.
  bool own = path.startsWith(scenario_->runner().folder());
  for (const ExampleCard* card : start_->cards()) own = own || card->example().files.contains(path);
  if (!own) remember_file(path);
}

void MainWindow::run_plans(const std::vector<PlanScenario>& scenarios) {
  workspace_->take_back_from_tabs();
  if (scenarios.size() > 1) show_view("compare");
  for (const PlanScenario& scenario : scenarios)
    if (const auto read = read_scenario(scenario.path))
      scenario_->run_text(read->text(), scenario.name, read->folder());
}

void MainWindow::change_plan(const PlanScenario& scenario) {
  const auto read = read_scenario(scenario.path);
  if (!read) return;
  scenario_->set_text(read->text(), scenario.name, read->folder());
  show_view("scenario");
}

std::unique_ptr<ScenarioDraft> MainWindow::read_scenario(const QString& path) {
  auto read = std::make_unique<ScenarioDraft>("", "");
  const QString why = read->load(path);
  if (why.isEmpty()) return read;
  refuse(why);
  return nullptr;
}

bool MainWindow::open_scenario(const QString& path) {
  scenario_->open_scenario(path);  // reports why if it fails
  const bool opened = scenario_->draft().path() == QFileInfo(path).absoluteFilePath();
  if (!opened) {
    ++failures_;
    if (!notices_.isEmpty()) messages_->add(notices_.last());
  }
  return opened;
}

void MainWindow::choose_files() {
  const QString folder = QSettings().value("folder").toString();
  const QStringList paths = QFileDialog::getOpenFileNames(this, "Open", folder, kOpened);
  if (paths.isEmpty()) return;
  QSettings().setValue("folder", QFileInfo(paths.front()).absolutePath());
  open_files(paths);
}

// ----- examples

void MainWindow::open_example(const Example& example) {
  if (!example.asks) return show_example(example);
  auto* dialog = new RecordDialog(!example.files.isEmpty(), this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &RecordDialog::files_wanted, this, &MainWindow::choose_files);
  connect(dialog, &RecordDialog::recorded_wanted, this, [this, example] { show_example(example); });
  dialog->open();
}

void MainWindow::show_example(const Example& example) {
  if (example.files.front().endsWith(".csv") || is_plan_file(example.files.front().toStdString()))
    return loader_.open_results(example.files.front());
  // Hide other runs; runs of the example that are already open are reused.
  QStringList missing = example.files;
  for (const Session::RunPointer& run : std::vector(session_.runs())) {
    const bool of_it = missing.removeAll(QString::fromStdString(run->path)) > 0;
    session_.set_shown(run->id, of_it);
    if (of_it) session_.set_current(run->id);
  }
  if (!missing.isEmpty()) {
    examples_[loader_.open(missing)] = example.view;
    return;
  }
  show_step();
  show_view(example.view);
  timeline_->setFocus();
}

// ----- sessions

void MainWindow::open_session(const QString& path) {
  const SavedSession from = read_session(path.toStdString());
  if (!scenario_->may_leave()) return;
  for (const Session::RunPointer& run : std::vector(session_.runs())) {
    state_.forget_run(run->id);
    session_.remove(run->id);
  }
  session_path_ = path;
  for (const QString& why_not : scenario_->restore_drafts(from.drafts, from.current_draft)) refuse(why_not);
  if (from.runs.empty()) return restore(from, {}, session_, state_);
  QStringList paths, names;
  for (const SavedSession::SavedRun& run : from.runs) {
    paths << QString::fromStdString(run.path);
    names << QString::fromStdString(run.name);
  }
  restoring_[loader_.open(paths, names)] = from;
}

void MainWindow::save_session(const QString& path) {
  SavedSession now = saved(session_, state_, scenario_->draft().path().toStdString());
  now.drafts = scenario_->saved_drafts();
  now.current_draft = scenario_->current_draft();
  keep_traces(now, scenario_->runner().folder().toStdString(), path.toStdString());
  write_session(now, path.toStdString());
  scenario_->keep_drafts();
  session_path_ = path;
  remember_file(path);
}

void MainWindow::choose_session_file() {
  QString path = QFileDialog::getSaveFileName(this, "Save session", session_path_, "Sessions (*.rehearse)");
  if (path.isEmpty()) return;
  if (!ends_in(path, ".rehearse")) path += ".rehearse";
  attempt([&] {
    save_session(path);
    statusBar()->showMessage(path + " was written", 5000);
  });
}

// ----- pictures and tables

QWidget* MainWindow::exported_view() const {
  return workspace_->current_view();
}

QAbstractItemView* MainWindow::exported_table() const {
  const auto table_in = [](const QWidget* view) -> QAbstractItemView* {
    if (view == nullptr) return nullptr;
    for (auto* table : view->findChildren<QAbstractItemView*>())
      if (table->isVisible() && (qobject_cast<QTableView*>(table) || qobject_cast<QTreeView*>(table)))
        return table;
    return nullptr;
  };
  if (auto* focused = qobject_cast<QAbstractItemView*>(QApplication::focusWidget());
      focused != nullptr && exported_view()->isAncestorOf(focused))
    return focused;
  if (QAbstractItemView* table = table_in(exported_view())) return table;
  return table_in(workspace_->open_tab());
}

void MainWindow::export_picture() {
  QWidget* view = exported_view();
  const QString path = QFileDialog::getSaveFileName(this, "Export " + view->objectName(),
                                                    view->objectName() + ".png", "PNG (*.png);;SVG (*.svg)");
  if (path.isEmpty()) return;
  attempt([&] {
    const Unrolled whole(*view);
    write_picture(*view, QFileInfo(path).suffix().isEmpty() ? path + ".png" : path);
    tell(path + " was written" + (whole.cut() ? kCut : ""));
  });
}

void MainWindow::copy_picture() {
  QWidget* view = exported_view();
  const Unrolled whole(*view);
  QApplication::clipboard()->setImage(picture_of(*view));
  tell("The picture of " + view->objectName() + " is on the clipboard" + (whole.cut() ? kCut : ""));
}

void MainWindow::export_table() {
  const QAbstractItemView* table = exported_table();
  if (table == nullptr || table->model() == nullptr)
    return refuse(
        "Neither the view \"" + exported_view()->objectName() +
        "\" nor the open tab has a table; allowed: Compare, Table, Ranks, Selection, Topology, Scaling, "
        "Accuracy, Plan, Runs");
  QString of;
  for (const Named& named : views_)
    if (named.view->isAncestorOf(table)) of = named.name;
  const QString path = QFileDialog::getSaveFileName(this, "Export table", of + ".csv", "CSV (*.csv)");
  if (path.isEmpty()) return;
  attempt([&] {
    write_csv(*table->model(), path);
    tell(path + " was written");
  });
}

// ----- recent files, drag and drop

void MainWindow::remember_file(const QString& path) {
  remember_recent(path, QDateTime::currentDateTime());
  start_->show_recent();
}

void MainWindow::fill_recent_menu() {
  recent_->clear();
  for (const RecentFile& file : recent_files()) {
    QAction* action = recent_->addAction(QFileInfo(file.path).fileName());
    action->setToolTip(file.path);
    connect(action, &QAction::triggered, this, [this, path = file.path] { open_files({path}); });
  }
  if (recent_->isEmpty()) recent_->addAction("No recent files")->setEnabled(false);
  recent_->setToolTipsVisible(true);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  QStringList paths;
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) paths << url.toLocalFile();
  if (paths.isEmpty()) return refuse("Only local files can be dropped here");
  event->acceptProposedAction();
  open_files(paths);
}

}  // namespace rehearse::gui
