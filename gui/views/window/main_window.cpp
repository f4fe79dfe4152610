#include "gui/views/window/main_window.hpp"

#include <QAbstractSpinBox>
#include <QActionGroup>
#include <QApplication>
#include <QBoxLayout>
#include <QCloseEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QPainter>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QSettings>
#include <QStatusBar>
#include <QTextEdit>
#include <QToolBar>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <array>
#include <set>

#include "gui/views/comparison/compare_view.hpp"
#include "gui/views/comparison/ops_view.hpp"
#include "gui/views/comparison/ranks_view.hpp"
#include "gui/views/comparison/why_view.hpp"
#include "gui/views/memory/memory_view.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/scenario/run_progress.hpp"
#include "gui/views/scenario/scenario_form.hpp"
#include "gui/views/scenario/scenario_view.hpp"
#include "gui/views/session/runs_view.hpp"
#include "gui/views/session/start_page.hpp"
#include "gui/views/tables/accuracy_view.hpp"
#include "gui/views/tables/plan_view.hpp"
#include "gui/views/tables/scaling_view.hpp"
#include "gui/views/tables/sweep_setup.hpp"
#include "gui/views/timeline/selection_view.hpp"
#include "gui/views/timeline/timeline_view.hpp"
#include "gui/views/topology/topology_view.hpp"
#include "gui/views/window/command_list.hpp"
#include "gui/views/window/message_bar.hpp"
#include "gui/views/window/tab_order.hpp"
#include "gui/views/window/window_place.hpp"
#include "gui/views/window/workspace.hpp"

namespace rehearse::gui {

namespace {

constexpr double kMargin = 0.02;  // room on either side of a step, as a share of its length

// Returns whether the widget takes keys as text.
bool takes_text(const QWidget* widget) {
  return qobject_cast<const QLineEdit*>(widget) || qobject_cast<const QAbstractSpinBox*>(widget) ||
         qobject_cast<const QTextEdit*>(widget) || qobject_cast<const QPlainTextEdit*>(widget);
}

// Draws frames of windows on a 16 x 16 grid; the style's own icons are dark on dark backgrounds.
QIcon window_icon(const QList<QRect>& frames) {
  constexpr int kScale = 2;
  QPixmap pixmap(16 * kScale, 16 * kScale);
  pixmap.setDevicePixelRatio(kScale);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  const QColor colour = QApplication::palette().color(QPalette::ButtonText);
  painter.setPen(colour);
  for (const QRect& frame : frames) {
    painter.drawRect(frame.adjusted(0, 0, -1, -1));
    painter.fillRect(QRect(frame.topLeft(), QSize(frame.width(), 3)), colour);
  }
  return pixmap;
}

}  // namespace

MainWindow::MainWindow() : loader_(session_) {
  setWindowTitle("Rehearse");
  setAcceptDrops(true);
  resize(1280, 800);
  make_views();
  make_status_bar();
  make_actions();
  make_start_page();
  make_menus();
  follow_session();
  const QString theme = QSettings().value("theme", "system").toString();
  set_theme(theme == "dark" ? Theme::dark : theme == "light" ? Theme::light : Theme::system);
  workspace_->show_start_page(true);
  start_->setFocus();
}

MainWindow::~MainWindow() {
  hide();
  delete workspace_;           // while it still has a parent that takes detached views back
  delete takeCentralWidget();  // the views, which observe members about to be destroyed
}

// ----- construction

void MainWindow::make_views() {
  timeline_ = new TimelineView(session_, state_);
  runs_ = new RunsView(session_, state_);
  scenario_ = new ScenarioView(session_, state_);
  scaling_ = new ScalingView(session_, state_);
  accuracy_ = new AccuracyView(session_, state_);
  plan_ = new PlanView(session_, state_);
  ranks_ = new RanksView(session_, state_);
  why_ = new WhyView(session_, state_);
  const std::vector<std::tuple<const char*, const char*, QWidget*>> tabs = {
      {"why", "Why", why_},
      {"selection", "Selection", new SelectionView(session_, state_)},
      {"compare", "Compare", new CompareView(session_, state_)},
      {"table", "Table", new OpsView(session_, state_)},
      {"ranks", "Ranks", ranks_},
      {"topology", "Topology", new TopologyView(session_, state_)},
      {"memory", "Memory", new MemoryView(session_, state_)},
      {"scaling", "Scaling", scaling_},
      {"accuracy", "Accuracy", accuracy_},
      {"plan", "Plan", plan_},
  };
  views_ = {{"timeline", timeline_}, {"runs", runs_}, {"scenario", scenario_}};
  start_ = new StartPage(examples());
  start_->setObjectName("start");
  workspace_ = new Workspace(timeline_, start_);
  workspace_->add_to_side(runs_);
  workspace_->add_to_side(scenario_);
  for (const auto& [name, title, view] : tabs) {
    workspace_->add_tab(view, title);
    if (view != ranks_) views_.push_back({name, view});
  }
  views_.push_back({"ranks", ranks_});  // last, so that the other views keep their keys
  messages_ = new MessageBar;
  auto* centre = new QWidget;
  auto* below = new QVBoxLayout(centre);
  below->setContentsMargins(0, 0, 0, 0);
  below->setSpacing(0);
  below->addWidget(messages_);
  below->addWidget(new RunProgress(scenario_->runner()));
  below->addWidget(workspace_, 1);
  setCentralWidget(centre);
  for (const Named& named : views_) {
    named.view->setObjectName(named.name);
    if (named.view->accessibleName().isEmpty()) named.view->setAccessibleName(named.name);
    begin_tab_order_with_proxy(*named.view);
  }
  // A selection opens the tab with its details unless the open tab already follows the selection.
  connect(&state_, &ViewState::selection_changed, this, [this] {
    const QWidget* open = workspace_->open_tab();
    const QString now = open != nullptr ? open->objectName() : QString();
    if ((state_.selected() || state_.area()) && !workspace_->is_detached(view("selection")) &&
        (now == "why" || now == "scaling" || now == "accuracy" || now == "plan"))
      show_view("selection");
  });
}

void MainWindow::make_status_bar() {
  position_ = new QLabel;
  position_->setAccessibleName("Visible time");
  progress_ = new QProgressBar;
  progress_->setAccessibleName("Reading");
  progress_->setMaximumWidth(160);
  progress_->setRange(0, 1000);
  cancel_ = new QToolButton;
  cancel_->setText("Cancel");
  cancel_->setToolTip("Stop reading");
  for (QWidget* widget : {static_cast<QWidget*>(progress_), static_cast<QWidget*>(cancel_)}) {
    statusBar()->addPermanentWidget(widget);
    widget->hide();
  }
  statusBar()->addPermanentWidget(position_);
  connect(cancel_, &QToolButton::clicked, &loader_, &Loader::cancel);
  connect(&loader_, &Loader::progressed, this,
          [this](double share) { progress_->setValue(static_cast<int>(1000 * share)); });
  connect(&loader_, &Loader::busy_changed, this, [this](bool busy) {
    progress_->setValue(0);
    progress_->setVisible(busy);
    cancel_->setVisible(busy);
  });
  for (const auto signal :
       {&ViewState::visible_changed, &ViewState::cursor_changed, &ViewState::selection_changed})
    connect(&state_, signal, this, &MainWindow::show_position);
}

QAction* MainWindow::add_action(const char* in, const QString& text, const QList<QKeySequence>& keys,
                                const QString& what, std::function<void()> act) {
  return add_command(*this, {in, text, keys, what}, std::move(act), Qt::WindowShortcut);
}

void MainWindow::make_actions() {
  using K = QKeySequence;
  open_ = add_action(menu::file, "&Open...", {K::Open}, "Open traces, scenarios, tables, plans or a session",
                     [this] { choose_files(); });
  add_action(menu::file, "&Reload", {Qt::Key_F5}, "Read the current run's file again", [this] {
    if (const Session::RunPointer run = session_.current()) loader_.reload(run->id);
  });
  add_action(menu::file, "Save s&ession...", {K("Ctrl+Alt+S")},
             "Save the open runs, the visible time and the bookmarks in a file",
             [this] { choose_session_file(); });
  add_action(menu::exports, "Export view as &picture...", {K("Ctrl+E")},
             "Write the current view with all of its rows as PNG or SVG", [this] { export_picture(); });
  add_action(menu::exports, "Export &table as CSV...", {K("Ctrl+Shift+E")},
             "Write the table that has the focus, or that of the open tab, as CSV",
             [this] { export_table(); });
  quit_ = add_action(menu::file, "&Quit", {K("Ctrl+Q")}, "Close the window", [this] { close(); });
  add_action(menu::edit, "Copy view as p&icture", {K("Ctrl+Alt+C")},
             "Copy a picture of the current view with all of its rows to the clipboard",
             [this] { copy_picture(); });
  add_action(menu::go, "One s&tep", {K("Ctrl+Shift+0")}, "Show the step that the figures describe",
             [this] { show_step(); });
  static constexpr std::array kKeysBeyondTen = {"Ctrl+Shift+A", "Ctrl+Shift+B", "Ctrl+Shift+N"};
  std::size_t number = 0;
  for (const Named& named : views_) {
    ++number;
    const QString title = named.name.left(1).toUpper() + named.name.mid(1);
    const K key = number <= 10 ? K(QString("Ctrl+%1").arg(number % 10)) : K(kKeysBeyondTen.at(number - 11));
    add_action(menu::views, "To the view: " + title, {key}, "Move the focus to the view " + title,
               [this, name = named.name] {
                 show_view(name);
                 view(name)->setFocus();
               });
  }
  make_layout_actions();
  make_themes();
  add_action(menu::view, "F&ull screen", {Qt::Key_F11}, "Use the entire screen",
             [this] { setWindowState(windowState() ^ Qt::WindowFullScreen); });
  commands_ = add_action(menu::help, "&Commands and shortcuts", {K("?"), K("Ctrl+Shift+P"), Qt::Key_F1},
                         "Show every command with its shortcut; type to find one, Enter runs it", [this] {
                           std::vector<QAction*> actions;
                           for (QAction* action : findChildren<QAction*>())
                             if (!menu_of(*action).isEmpty()) actions.push_back(action);
                           auto* list = new CommandList(std::move(actions), this);
                           list->setAttribute(Qt::WA_DeleteOnClose);
                           list->open();
                         });
}

void MainWindow::make_layout_actions() {
  const auto add_switch = [this](const char* text, const char* key, const char* what, Workspace::Part part) {
    QAction* action =
        add_action(menu::view, text, {QKeySequence(key)}, what, [this, part] { workspace_->toggle(part); });
    action->setCheckable(true);
    const auto follow = [this, action, part] { action->setChecked(workspace_->shows(part)); };
    connect(workspace_, &Workspace::changed, action, follow);
    follow();
  };
  add_switch("Side pane&l", "Ctrl+B", "Show runs and the scenario", Workspace::Part::side);
  add_switch("Time&line", "Ctrl+T", "Show the timelines", Workspace::Part::timeline);
  add_switch("Lower &tabs", "Ctrl+J", "Show the tabs that explain the timelines", Workspace::Part::tabs);
  QAction* alone = add_action(
      menu::view, "&Maximise view", {QKeySequence("Ctrl+M"), Qt::Key_F12},
      "Maximise the view that has the focus, or the open tab, or restore the layout", [this] {
        workspace_->maximise(workspace_->maximised() != nullptr ? nullptr : workspace_->current_view());
      });
  alone->setCheckable(true);
  connect(workspace_, &Workspace::changed, alone,
          [this, alone] { alone->setChecked(workspace_->maximised() != nullptr); });
  QAction* detach = add_action(
      menu::view, "Detach &view", {QKeySequence("Ctrl+Shift+M")},
      "Move the view that has the focus, or the open tab, into a separate window, or back", [this] {
        QWidget* view = workspace_->current_view();
        workspace_->is_detached(view) ? workspace_->attach(view) : workspace_->detach(view);
      });
  alone_ = alone;
  detach_ = detach;
  workspace_->set_tab_commands({alone_, detach_});
}

void MainWindow::make_start_page() {
  add_action(menu::help, "&Start page", {QKeySequence("Alt+Home")},
             "Show examples and recently opened files; press again to return to the previous view", [this] {
               workspace_->show_start_page(!workspace_->shows_start_page());
               if (workspace_->shows_start_page()) start_->setFocus();
             });
  QList<QAction*> own = {open_};
  for (QAction* action : scenario_->actions())
    if (action->text() == "&New scenario") {
      // As a button, it also brings the scenario view to the front.
      auto* begun = new QAction(action->text(), this);
      begun->setToolTip(action->toolTip());
      begun->setShortcut(action->shortcut());
      begun->setShortcutContext(Qt::WidgetShortcut);
      connect(begun, &QAction::triggered, this, [this, action] {
        action->trigger();
        show_view("scenario");
        view("scenario")->setFocus();
      });
      own << begun;
    }
  start_->set_commands(own << commands_);
  connect(start_, &StartPage::example_chosen, this, &MainWindow::open_example);
  connect(start_, &StartPage::file_chosen, this, [this](const QString& path) { open_files({path}); });
}

void MainWindow::make_themes() {
  struct Choice {
    const char *text, *key, *stored;
    Theme theme;
  };
  themes_ = new QActionGroup(this);
  for (const Choice& choice : {Choice{"Colours of the &desktop", "Ctrl+Alt+1", "system", Theme::system},
                               Choice{"&Light colours", "Ctrl+Alt+2", "light", Theme::light},
                               Choice{"&Dark colours", "Ctrl+Alt+3", "dark", Theme::dark}}) {
    QAction* action = add_action(menu::colours, choice.text, {QKeySequence(choice.key)},
                                 "Choose the colours of the window", [this, choice] {
                                   set_theme(choice.theme);
                                   QSettings().setValue("theme", choice.stored);
                                 });
    action->setCheckable(true);
    action->setData(static_cast<int>(choice.theme));
    themes_->addAction(action);
  }
}

void MainWindow::make_menus() {
  std::map<QString, QMenu*> menus;
  for (const char* name : menu::all) menus[name] = menuBar()->addMenu(name);
  const auto menu_named = [&](const QString& name) {
    QMenu*& found = menus[name];
    if (found == nullptr)
      found = menus.at(name.section(menu::kBelow, 0, 0))->addMenu(name.section(menu::kBelow, 1));
    return found;
  };
  const auto fill = [&](const QWidget* widget, bool own) {
    std::set<QMenu*> begun;
    for (QAction* action : widget->actions()) {
      if (menu_of(*action).isEmpty()) continue;
      QMenu* into = menu_named(menu_of(*action));
      if (!own && begun.insert(into).second && !into->isEmpty()) into->addSeparator();
      into->addAction(action);
      if (own && action->text() == "&Open...") {
        recent_ = into->addMenu("Open rece&nt");
        connect(recent_, &QMenu::aboutToShow, this, &MainWindow::fill_recent_menu);
      }
    }
  };
  // Add submenus first, in this order.
  for (const char* name : menu::below) menu_named(name);
  menus[menu::view]->addSeparator();
  fill(this, true);
  for (const Named& named : views_) {
    fill(named.view, false);
    for (const QWidget* part : named.view->findChildren<QWidget*>()) fill(part, false);
  }
  menus[menu::file]->removeAction(quit_);
  menus[menu::file]->addSeparator();
  menus[menu::file]->addAction(quit_);
  for (const auto& [name, shown] : menus) shown->setToolTipsVisible(true);
}

// ----- reactions to signals

void MainWindow::follow_session() {
  connect(&session_, &Session::current_changed, this, [this] {
    const Session::RunPointer run = session_.current();
    setWindowTitle(run ? QString::fromStdString(run->name) + " - Rehearse" : "Rehearse");
  });
  connect(&session_, &Session::runs_changed, this, [this] {
    workspace_->set_has_runs(!session_.runs().empty());
    if (session_.runs().empty() && !has_results_) workspace_->show_start_page(true);
  });
  connect(&loader_, &Loader::begun, this, [this](int id) {
    newest_run_ = std::max(newest_run_, id);
    show_step();
    timeline_->scene().reveal_run(id);
    begun_ = {id, state_.visible()};
    tell(QString::fromStdString(session_.run(id)->name) + ": this is its first part, the rest is being read");
  });
  connect(&loader_, &Loader::opened, this, [this](int id) {
    const Session::RunPointer run = session_.run(id);
    if (!run) return;
    // Show the entire step of a new run together with the others; a reloaded run keeps the visible time
    // range, and so does one whose first part was shown, if the user has changed the range since.
    const bool is_new = id > newest_run_ || (id == begun_.run && state_.visible() == begun_.visible);
    newest_run_ = std::max(newest_run_, id);
    if (is_new) {
      show_step();
      timeline_->scene().reveal_run(id);
    }
    if (!takes_text(focusWidget())) timeline_->setFocus();
    const bool predicted_here = QString::fromStdString(run->path).startsWith(scenario_->runner().folder());
    if (is_new && predicted_here && session_.shown().size() > 1 && workspace_->open_tab() == view("why"))
      show_view("compare");
    if (!run->timeline->problems.empty())
      tell(QString::fromStdString(run->name + ": " + run->timeline->problems.front()) +
           (run->timeline->problems.size() > 1
                ? QString(" (and %1 more, see Why)").arg(run->timeline->problems.size() - 1)
                : QString()));
  });
  connect(&loader_, &Loader::failed, this,
          [this](const QString&, const QString& message) { refuse(message); });
  connect(&loader_, &Loader::finished, this, [this](int number, const std::vector<int>& ids) {
    if (const auto example = examples_.find(number); example != examples_.end()) {
      show_step();
      show_view(example->second);
      timeline_->setFocus();
      examples_.erase(example);
    }
    const auto found = restoring_.find(number);
    if (found == restoring_.end()) return;
    restore(found->second, ids, session_, state_);
    scenario_->show_restored();
    restoring_.erase(found);
  });
  connect(&loader_, &Loader::results_read, this, &MainWindow::show_results);
  const auto open = [this](const QString& path) { open_files({path}); };
  connect(scaling_, &ScalingView::open_requested, this, open);
  connect(accuracy_, &AccuracyView::open_requested, this, open);
  connect(scenario_, &ScenarioView::trace_made, this,
          [this](const QString& path, const QString& name) { loader_.open({path}, {name}); });
  connect(scenario_, &ScenarioView::message, this, &MainWindow::tell);
  connect(&scenario_->runner(), &CommandRunner::finished, this, [this](const RunOutcome& outcome) {
    if (outcome.kind == RunOutcome::Kind::failed) ++failures_;
  });
  follow_plans();
  connect(ranks_, &RanksView::rank_chosen, timeline_, &TimelineView::select_rank);
  follow_advice();
  follow_sweeps();
  connect(runs_, &RunsView::reload_requested, &loader_, &Loader::reload);
  connect(runs_, &RunsView::duplicate_requested, this, [this](int id) {
    scenario_->duplicate_run(id);
    show_view("scenario");
  });
}

void MainWindow::follow_plans() {
  CommandRunner& runner = scenario_->runner();
  connect(plan_, &PlanView::open_requested, this, [this](const QString& path) { open_files({path}); });
  connect(plan_, &PlanView::message, this, &MainWindow::tell);
  connect(plan_, &PlanView::cancel_requested, this, [&runner] { runner.cancel(runner.running_id()); });
  connect(plan_, &PlanView::run_requested, this, &MainWindow::run_plans);
  connect(plan_, &PlanView::change_requested, this, &MainWindow::change_plan);
  connect(&runner, &CommandRunner::progressed, this, [this, &runner] {
    const bool searching = runner.busy() && runner.running_task() == Task::plan;
    plan_->show_progress(searching ? QString("%1, %2 s  %3")
                                         .arg(runner.running_name(),
                                              QString::number(runner.elapsed_s(), 'f', 0), runner.last_line())
                                   : QString());
  });
  connect(scenario_, &ScenarioView::plans_made, this, [this](const QString& path, const QString& name) {
    planned_[path] = name;
    loader_.open_results(path);
  });
}

// Opens runs that advice asks for beside the advised run.
void MainWindow::follow_advice() {
  // A subfolder of the runner's folder, because saved sessions retain traces from there.
  CommandRunner& trials = why_->trials().runner();
  trials.set_folder(scenario_->runner().folder() + "/advice");
  connect(why_, &WhyView::open_requested, this,
          [this](const QString& trace, const QString& name) { loader_.open({trace}, {name}); });
  connect(why_, &WhyView::run_requested, this,
          [this](const QString& text, const QString& name, const QStringList& settings) {
            scenario_->run_text(text, name, {}, settings);
          });
  connect(why_, &WhyView::compare_requested, this, [this] { show_view("compare"); });
  connect(why_, &WhyView::change_requested, this, [this](int run, const QStringList& settings) {
    scenario_->change_run(run, settings);
    show_view("scenario");
  });
}

// Sweeps the open scenario, and opens points of a sweep as runs.
void MainWindow::follow_sweeps() {
  SweepSetup& setup = scaling_->setup();
  setup.runner().set_folder(scenario_->runner().folder() + "/sweeps");
  setup.set_scenario([this] {
    scenario_->form().commit();
    const ScenarioDraft& draft = scenario_->draft();
    return RunRequest{draft.text(), draft.name(), draft.folder()};
  });
  connect(scaling_, &ScalingView::message, this, &MainWindow::tell);
  connect(scaling_, &ScalingView::saved, this, &MainWindow::remember_file);
  connect(scaling_, &ScalingView::run_requested, scenario_, &ScenarioView::run_text);
}

void MainWindow::show_step() {
  TimeRange steps;
  for (const Session::RunPointer& run : session_.shown()) {
    const TimeRange& step = run->figures.step;
    if (step.length() <= 0) continue;
    steps = {std::min(steps.begin, step.begin - run->aligned), std::max(steps.end, step.end - run->aligned)};
  }
  if (steps.length() <= 0) return state_.fit();
  const Time margin = static_cast<Time>(kMargin * static_cast<double>(steps.length()));
  state_.set_visible({steps.begin - margin, steps.end + margin});
}

void MainWindow::tell(const QString& message) {
  notices_ << message;
  statusBar()->showMessage(message, 20'000);
}

void MainWindow::refuse(const QString& message) {
  ++failures_;
  tell(message);
  messages_->add(message);
}

void MainWindow::show_position() {
  const TimeRange visible = state_.visible();
  QString text = QString::fromStdString(duration_text(visible.length())) + " visible";
  if (state_.area())
    text = QString::fromStdString(duration_text(state_.area()->range.length())) + " selected, " + text;
  if (state_.cursor()) text = "at " + QString::fromStdString(duration_text(*state_.cursor())) + ", " + text;
  position_->setText(text);
}

QStringList MainWindow::view_names() {
  return {"window", "start",    "timeline", "runs",    "scenario", "why",  "selection", "compare",
          "table",  "topology", "memory",   "scaling", "accuracy", "plan", "ranks"};
}

QWidget* MainWindow::view(const QString& name) const {
  if (name == "start") return start_;
  for (const Named& named : views_)
    if (named.name == name) return named.view;
  return nullptr;
}

bool MainWindow::show_view(const QString& name) {
  QWidget* wanted = view(name);
  if (wanted == nullptr) return false;
  if (wanted == start_)
    workspace_->show_start_page(true);
  else
    workspace_->show_view(wanted);
  return true;
}

void MainWindow::set_theme(Theme theme) {
  theme_ = theme;
  QApplication::setPalette(palette_of(theme));
  alone_->setIcon(window_icon({{2, 2, 12, 12}}));
  detach_->setIcon(window_icon({{2, 6, 8, 8}, {6, 2, 8, 8}}));
  for (QAction* action : themes_->actions())
    action->setChecked(action->data().toInt() == static_cast<int>(theme));
}

bool MainWindow::event(QEvent* event) {
  // The desktop switched its colour scheme.
  if (event->type() == QEvent::ThemeChange && theme_ == Theme::system) set_theme(theme_);
  return QMainWindow::event(event);
}

bool MainWindow::settled() const {
  return !loader_.busy() && !scenario_->runner().busy() && scenario_->runner().queued() == 0 &&
         !why_->busy() && !scaling_->busy() && start_->settled();
}

void MainWindow::restore_layout() {
  QSettings settings;
  restore_place(*this, settings);
  workspace_->restore(settings);
  keeps_layout_ = true;
}

void MainWindow::never_ask() {
  scenario_->set_question([](const QStringList&) { return Unsaved::discard; });
}

// Passes unhandled keys, for instance on a tab, to the timeline.
void MainWindow::keyPressEvent(QKeyEvent* event) {
  QMainWindow::keyPressEvent(event);
  if (timeline_->isAncestorOf(focusWidget())) return;
  const QKeySequence key(static_cast<int>(event->modifiers() & ~Qt::KeypadModifier) | event->key());
  for (QAction* action : timeline_->actions()) {
    if (!action->isEnabled() || !action->shortcuts().contains(key)) continue;
    action->trigger();
    event->accept();
    return;
  }
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!scenario_->may_leave()) return event->ignore();
  loader_.cancel();
  workspace_->attach_all();
  if (keeps_layout_) {
    QSettings settings;
    remember_place(*this, settings);
    workspace_->remember(settings);
  }
  QMainWindow::closeEvent(event);
}

}  // namespace rehearse::gui
