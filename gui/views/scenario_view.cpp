#include "gui/views/scenario_view.hpp"

#include <fmt/format.h>

#include <QAction>
#include <QFileDialog>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMenu>
#include <QRegularExpression>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/models/run_list.hpp"
#include "gui/models/scenario_fields.hpp"
#include "gui/views/appearance.hpp"
#include "gui/views/command.hpp"
#include "gui/views/scenario_editor.hpp"
#include "gui/views/scenario_form.hpp"

namespace rehearse::gui {
namespace {

constexpr int kMostTabPixels = 160;             // of a name in a tab
constexpr int kRoomForBoth = 700;               // pixels that form and text need beside each other
constexpr std::size_t kMostClosed = 20;         // drafts that can be reopened
constexpr qsizetype kMostToldCharacters = 300;  // of a message; the rest in its tooltip

QString result_line(const RunOutcome& outcome) {
  const QJsonObject json = QJsonDocument::fromJson(outcome.json).object();
  const double samples = json["samples_per_s"].toDouble();
  QString line = QString("%1: %2 a step").arg(outcome.name, step_text(json["step_time_s"].toDouble()));
  if (samples > 0) line += QString::fromStdString(fmt::format(", {:.4g} samples/s", samples));
  return line + QString::fromStdString(fmt::format(" (predicted in {:.1f} s)", outcome.seconds));
}

}  // namespace

ScenarioView::ScenarioView(Session& session, ViewState&, QWidget* parent)
    : QWidget(parent), session_(session) {
  setAccessibleName("Scenario");
  build_actions();
  build_widgets();
  connect(&check_, &ScenarioCheck::checked, this, &ScenarioView::show_check);
  connect(&runner_, &CommandRunner::progressed, this, &ScenarioView::show_progress);
  connect(&runner_, &CommandRunner::finished, this, &ScenarioView::run_ended);
  const auto follow_run = [this] {
    const auto run = session_.current();
    duplicate_->setEnabled(run && !run->scenario_text.empty());
  };
  for (const auto& signal : {&Session::current_changed, &Session::runs_changed})
    connect(&session_, signal, this, follow_run);
  connect(&session_, &Session::run_changed, this, follow_run);
  follow_run();
  new_draft();
  show_progress();
  lay_out();
}

ScenarioView::~ScenarioView() {
  tabs_->disconnect(this);
  delete editor_;  // before the drafts that it shows
  delete form_;
}

QAction* ScenarioView::add(const char* text, const char* menu, const QKeySequence& keys, const char* tip,
                           void (ScenarioView::*slot)()) {
  return add_command(
      *this, {menu, text, {keys}, tip}, [this, slot] { (this->*slot)(); }, Qt::WindowShortcut);
}

void ScenarioView::build_actions() {
  using V = ScenarioView;
  run_ = add("&Run", "&Run", Qt::CTRL | Qt::Key_R, "Predict this scenario", &V::run);
  plan_ = add("Find the &best plan", "&Run", Qt::CTRL | Qt::SHIFT | Qt::Key_R,
              "Search the parallelization that trains this model fastest on this cluster", &V::plan);
  cancel_ = add("&Cancel", "&Run", Qt::CTRL | Qt::Key_Period,
                "End the predictions and searches that are under way or waiting", &V::cancel);
  duplicate_ =
      add("&Duplicate run", "&Run", Qt::CTRL | Qt::Key_D,
          "Open the scenario of the current run, to change it and run it again", &V::duplicate_current);
  new_ = add("&New scenario", "&File", Qt::CTRL | Qt::Key_N, "Begin another scenario", &V::new_draft);
  open_ = add("Open &scenario...", "&File", Qt::CTRL | Qt::SHIFT | Qt::Key_O, "Open a scenario file",
              &V::choose_file);
  save_ = add("&Save scenario", "&File", Qt::CTRL | Qt::Key_S, "Write the scenario to its file", &V::save);
  save_as_ = add("Save scenario &as...", "&File", Qt::CTRL | Qt::SHIFT | Qt::Key_S,
                 "Write the scenario to another file", &V::save_as);
  close_ = add("&Close scenario", "&File", Qt::CTRL | Qt::Key_W, "Close this scenario", &V::close_current);
  reopen_ = add("Re&open closed scenario", "&File", Qt::CTRL | Qt::SHIFT | Qt::Key_T,
                "Open the scenario again that was closed last", &V::reopen);
  undo_ = add("&Undo", "&Edit", QKeySequence(Qt::CTRL | Qt::Key_Z),
              "Take back the last change of the scenario", &V::undo);
  redo_ = add("&Redo", "&Edit", QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Z),
              "Make the change again that was taken back", &V::redo);
  error_ = add("&Go to the error", "&Go", Qt::Key_F8, "Show what is wrong in the scenario's text",
               &V::go_to_error);
  for (QAction* action : {save_, save_as_, close_, undo_, redo_})
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  // What the tool bar has no room to say at length.
  plan_->setIconText("Plan");
  new_->setIconText("New");
  open_->setIconText("Open...");
  save_->setIconText("Save");
  save_as_->setIconText("Save as...");
  duplicate_->setIconText("Duplicate run");
}

void ScenarioView::build_widgets() {
  tools_ = new QToolBar("Scenario", this);
  tools_->setToolButtonStyle(Qt::ToolButtonTextOnly);
  tools_->setMovable(false);
  templates_ = new QMenu("New from a shipped scenario", this);
  templates_->setToolTipsVisible(true);
  connect(templates_, &QMenu::aboutToShow, this, &ScenarioView::fill_templates);
  tools_->addActions({run_, plan_, cancel_});
  tools_->addSeparator();
  auto* fresh = new QToolButton(tools_);
  fresh->setDefaultAction(new_);
  fresh->setMenu(templates_);
  fresh->setPopupMode(QToolButton::MenuButtonPopup);
  tools_->addWidget(fresh);
  tools_->addAction(open_);  // others: lay_out()
  auto* more = new QToolButton(tools_);
  more->setText("More");
  more->setToolTip("More to do with the scenario");
  more->setPopupMode(QToolButton::InstantPopup);
  more->addActions({save_, save_as_, duplicate_, close_, reopen_});
  more_ = tools_->addWidget(more);
  if (QWidget* button = tools_->widgetForAction(run_)) {
    QFont bold = button->font();
    bold.setBold(true);
    button->setFont(bold);
  }

  tabs_ = new QTabBar(this);
  tabs_->setAccessibleName("Open scenarios");
  tabs_->setDocumentMode(true);
  tabs_->setDrawBase(false);
  tabs_->setTabsClosable(true);
  tabs_->setExpanding(false);
  tabs_->setElideMode(Qt::ElideNone);  // they scroll; tell_drafts() shortens names
  tabs_->setUsesScrollButtons(true);
  connect(tabs_, &QTabBar::currentChanged, this, &ScenarioView::show_draft);
  connect(tabs_, &QTabBar::tabCloseRequested, this, &ScenarioView::close_draft);

  sides_ = new QTabBar(this);
  sides_->setAccessibleName("Form or text");
  sides_->setDocumentMode(true);
  sides_->setExpanding(true);
  sides_->setDrawBase(false);
  sides_->addTab("Form");
  sides_->addTab("Text");
  connect(sides_, &QTabBar::currentChanged, this, &ScenarioView::lay_out);

  splitter_ = new QSplitter(Qt::Horizontal, this);
  splitter_->setChildrenCollapsible(false);
  form_ = new ScenarioForm(splitter_);
  editor_ = new ScenarioEditor(splitter_);
  splitter_->addWidget(form_);
  splitter_->addWidget(editor_);
  splitter_->setStretchFactor(0, 2);
  splitter_->setStretchFactor(1, 3);

  const auto line = [this](const char* name) {
    auto* label = new QLabel(this);
    label->setAccessibleName(name);
    label->setWordWrap(true);
    label->setContentsMargins(10, 3, 10, 3);
    label->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Minimum);
    return label;
  };
  told_ = line("Whether the scenario can be run");
  told_->setTextFormat(Qt::RichText);
  told_->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
  connect(told_, &QLabel::linkActivated, this, [this](const QString& link) {
    if (link != "suggestion") return go_to_error();
    const auto suggestion = draft().suggestion(error_line_, error_column_, told_->toolTip());
    if (suggestion) draft().change(suggestion->edit);
  });
  progress_ = line("Progress and result of the run");
  progress_->setTextFormat(Qt::PlainText);
  progress_->setTextInteractionFlags(Qt::TextSelectableByMouse);

  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(tools_);
  layout->addWidget(tabs_);
  layout->addWidget(sides_);
  layout->addWidget(splitter_, 1);
  layout->addWidget(told_);
  layout->addWidget(progress_);
}

void ScenarioView::fill_templates() {
  templates_->clear();
  for (const ScenarioTemplate& shipped : scenario_templates()) {
    QAction* action = templates_->addAction(shipped.name);
    action->setToolTip(shipped.told);
    connect(action, &QAction::triggered, this, [this, shipped] {
      ScenarioDraft read("", "");
      const QString why = read.load(shipped.path);
      if (!why.isEmpty()) return emit message(why);
      set_text(read.text(), shipped.name, QFileInfo(shipped.path).absolutePath());
    });
  }
  if (templates_->isEmpty()) templates_->addAction("No scenarios are installed")->setEnabled(false);
}

// ----- drafts

void ScenarioView::add_draft(std::unique_ptr<ScenarioDraft> draft) {
  // The first, untouched one makes room.
  const bool replace = has_only_template();
  connect(draft.get(), &ScenarioDraft::text_changed, this, &ScenarioView::check_draft);
  connect(draft.get(), &ScenarioDraft::modified_changed, this, &ScenarioView::tell_drafts);
  connect(draft.get(), &ScenarioDraft::name_changed, this, &ScenarioView::tell_drafts);
  drafts_.push_back(std::move(draft));
  tabs_->addTab("");
  tell_drafts();
  tabs_->setCurrentIndex(tabs_->count() - 1);
  show_draft(tabs_->currentIndex());
  if (replace) close_draft(0);
}

bool ScenarioView::draft_is_untouched() const {
  const ScenarioDraft& first = *drafts_.front();
  return first.path().isEmpty() && !first.is_modified() && first.text() == new_scenario_text();
}

void ScenarioView::show_draft(int place) {
  if (place < 0 || place >= static_cast<int>(drafts_.size())) return;
  if (current_ >= 0 && current_ < static_cast<int>(drafts_.size())) form_->commit();
  current_ = place;
  editor_->set_draft(draft());
  form_->set_draft(draft());
  undo_->setEnabled(draft().document().isUndoAvailable());
  redo_->setEnabled(draft().document().isRedoAvailable());
  show_error(0, 0, {});
  told_->clear();
  check_draft();
  check_.check_now();
}

void ScenarioView::close_draft(int place) {
  if (place < 0 || place >= static_cast<int>(drafts_.size())) return;
  if (drafts_.size() == 1) {
    if (draft_is_untouched()) return;
    // The window is never without a draft.
    auto fresh = std::make_unique<ScenarioDraft>(new_scenario_text(), "untitled");
    add_draft(std::move(fresh));
    if (drafts_.size() == 1) return;
  }
  // Show another one first: nobody may look at a draft that is gone.
  if (place == current_) tabs_->setCurrentIndex(place + 1 < tabs_->count() ? place + 1 : place - 1);
  std::unique_ptr<ScenarioDraft> closed = std::move(drafts_[static_cast<std::size_t>(place)]);
  closed->disconnect(this);
  drafts_.erase(drafts_.begin() + place);
  if (current_ > place) --current_;
  const QSignalBlocker quiet(tabs_);
  tabs_->removeTab(place);
  tabs_->setCurrentIndex(current_);
  if (closed->is_modified() || !closed->path().isEmpty() || closed->text() != new_scenario_text())
    closed_.push_back(std::move(closed));
  if (closed_.size() > kMostClosed) closed_.erase(closed_.begin());
  tell_drafts();
}

void ScenarioView::reopen() {
  if (closed_.empty()) return;
  std::unique_ptr<ScenarioDraft> draft = std::move(closed_.back());
  closed_.pop_back();
  add_draft(std::move(draft));
}

void ScenarioView::tell_drafts() {
  for (int i = 0; i < tabs_->count() && i < static_cast<int>(drafts_.size()); ++i) {
    const ScenarioDraft& draft = *drafts_[static_cast<std::size_t>(i)];
    QString name = tabs_->fontMetrics().elidedText(draft.name(), Qt::ElideMiddle, kMostTabPixels);
    tabs_->setTabText(i, name.replace('&', "&&") + (draft.is_modified() ? " *" : ""));
    tabs_->setTabToolTip(i, draft.path().isEmpty() ? draft.name() + ", not in a file" : draft.path());
  }
  reopen_->setEnabled(!closed_.empty());
}

bool ScenarioView::has_unsaved_changes() const {
  return std::any_of(drafts_.begin(), drafts_.end(), [](const auto& draft) { return draft->is_modified(); });
}

// "X (2)" if there is an X: among the drafts, or among runs and what is to become one.
QString ScenarioView::unused_name(const QString& name, bool of_runs) const {
  const auto is_used = [&](const QString& candidate) {
    if (!of_runs)
      return std::any_of(drafts_.begin(), drafts_.end(),
                         [&](const auto& d) { return d->name() == candidate; });
    return std::any_of(running_.begin(), running_.end(),
                       [&](const Running& r) { return r.name == candidate; }) ||
           std::any_of(session_.runs().begin(), session_.runs().end(),
                       [&](const auto& run) { return run->name == candidate.toStdString(); });
  };
  static const QRegularExpression kNumber(R"( \(\d+\)$)");
  QString stem = name;
  stem.remove(kNumber);
  QString candidate = name;
  for (int i = 2; is_used(candidate); ++i) candidate = stem + QString(" (%1)").arg(i);
  return candidate;
}

void ScenarioView::new_draft() {
  add_draft(std::make_unique<ScenarioDraft>(new_scenario_text(), unused_name("untitled", false)));
}

void ScenarioView::open_scenario(const QString& path) {
  const QString absolute = QFileInfo(path).absoluteFilePath();
  for (std::size_t i = 0; i < drafts_.size(); ++i)
    if (drafts_[i]->path() == absolute) return tabs_->setCurrentIndex(static_cast<int>(i));
  auto draft = std::make_unique<ScenarioDraft>("", "");
  if (const QString why = draft->load(absolute); !why.isEmpty()) return emit message(why);
  add_draft(std::move(draft));
}

void ScenarioView::set_text(const QString& text, const QString& name, const QString& folder) {
  auto draft = std::make_unique<ScenarioDraft>(text, unused_name(name, false));
  draft->set_folder(folder);
  add_draft(std::move(draft));
}

void ScenarioView::duplicate_run(int id) {
  const auto run = session_.run(id);
  if (!run) return;
  const QString name = QString::fromStdString(run->name);
  if (run->scenario_text.empty()) return emit message(QString("The scenario of %1 is not known").arg(name));
  // Unlike the run, and unlike any draft.
  QString fresh = unused_name(name, true);
  while (unused_name(fresh, false) != fresh) fresh = unused_name(fresh, false);
  set_text(QString::fromStdString(run->scenario_text), fresh);
}

void ScenarioView::duplicate_current() {
  if (const auto run = session_.current()) duplicate_run(run->id);
}

void ScenarioView::choose_file() {
  const QString path = QFileDialog::getOpenFileName(this, "Open a scenario", draft().folder(),
                                                    "Scenarios (*.toml);;All files (*)");
  if (!path.isEmpty()) open_scenario(path);
}

void ScenarioView::save() {
  if (draft().path().isEmpty()) return save_as();
  form_->commit();
  const QString why = draft().save(draft().path());
  emit message(why.isEmpty() ? QString("Saved %1").arg(draft().path()) : why);
}

void ScenarioView::save_as() {
  form_->commit();
  const QString first =
      draft().path().isEmpty() ? QDir(draft().folder()).filePath(draft().name() + ".toml") : draft().path();
  QString path = QFileDialog::getSaveFileName(this, "Save the scenario", first, "Scenarios (*.toml)");
  if (path.isEmpty()) return;
  if (QFileInfo(path).suffix().isEmpty()) path += ".toml";
  const QString why = draft().save(path);
  emit message(why.isEmpty() ? QString("Saved %1").arg(path) : why);
  check_draft();  // file names in it begin elsewhere now
}

// ----- the check

void ScenarioView::check_draft() {
  check_.set_text(draft().text(), draft().folder());
  undo_->setEnabled(draft().document().isUndoAvailable());
  redo_->setEnabled(draft().document().isRedoAvailable());
}

void ScenarioView::show_check() {
  if (!check_.is_current()) return;
  const CheckedScenario& checked = check_.result();
  form_->show_check(checked);
  if (!checked.ok) return show_error(checked.line, checked.column, checked.message);
  show_error(0, 0, {});
  told_->setText(checked.summary.toHtmlEscaped());
  told_->setToolTip(checked.summary);
}

void ScenarioView::show_error(int line, int column, const QString& what) {
  error_line_ = line;
  error_column_ = column;
  error_->setEnabled(line > 0);
  editor_->mark_error(line, column, what);
  if (what.isEmpty()) return;
  const QPalette& colours = palette();
  const QString colour = critical_colour(is_dark(colours)).name();
  const auto suggestion = draft().suggestion(line, column, what);
  const qsizetype most = suggestion ? kMostToldCharacters / 3 : kMostToldCharacters;
  const QString shown = what.size() > most ? what.left(most) + "..." : what;
  const QString place = line > 0 ? QString("<a href=\"error\" style=\"color:%1\">Line %2, column %3</a>: ")
                                       .arg(colour)
                                       .arg(line)
                                       .arg(column)
                                 : QString("<span style=\"color:%1\">Error</span>: ").arg(colour);
  QString text = place + shown.toHtmlEscaped();
  if (suggestion)
    text += QString(" <a href=\"suggestion\" style=\"color:%1\">Change it to %2</a>")
                .arg(colours.color(QPalette::Link).name(), suggestion->name);
  told_->setText(text);
  told_->setToolTip(what);
}

void ScenarioView::go_to_error() {
  if (error_line_ == 0) return;
  sides_->setCurrentIndex(1);
  editor_->go_to(error_line_, error_column_);
}

// ----- running

void ScenarioView::run() {
  form_->commit();
  check_.check_now();
  if (check_.is_current() && !check_.result().ok) {
    emit message(check_.result().message);
    return go_to_error();
  }
  start(&draft(), {draft().text(), unused_name(draft().name(), true), draft().folder()});
}

// Not only of what can be run: it is the search that replaces a strategy that cannot.
void ScenarioView::plan() {
  form_->commit();
  start(&draft(), {draft().text(), draft().name(), draft().folder(), Task::plan});
}

void ScenarioView::run_text(const QString& text, const QString& name, const QString& folder) {
  start(nullptr, {text, unused_name(name, true), folder});
}

void ScenarioView::start(ScenarioDraft* draft, const RunRequest& request) {
  running_[runner_.start(request)] = {draft, request.text, request.name};
  result_.clear();
  show_progress();
}

void ScenarioView::cancel() {
  runner_.cancel_all();
}

void ScenarioView::show_progress() {
  const bool busy = runner_.busy() || runner_.queued() > 0;
  cancel_->setEnabled(busy);
  QString text = result_;
  if (busy) {
    const char* doing = runner_.running_task() == Task::plan ? "Searching plans for" : "Predicting";
    text = runner_.busy()
               ? QString::fromStdString(fmt::format(
                     "{} {}: {:.1f} s", doing, runner_.running_name().toStdString(), runner_.elapsed_s()))
               : QString("Starting...");
    if (runner_.busy() && runner_.queued() > 0) text += QString(", %1 waiting").arg(runner_.queued());
    if (!runner_.last_line().isEmpty()) text += '\n' + runner_.last_line();
  }
  progress_->setText(text);
  progress_->setVisible(!text.isEmpty());
}

void ScenarioView::run_ended(const RunOutcome& outcome) {
  const Running request = running_.take(outcome.id);
  switch (outcome.kind) {
    case RunOutcome::Kind::done:
      if (outcome.task == Task::plan) {
        result_ = QString("%1: the best plan is found, in %2 s")
                      .arg(outcome.name, QString::number(outcome.seconds, 'f', 1));
        emit plans_made(outcome.path, outcome.name);
      } else {
        result_ = result_line(outcome);
        emit trace_made(outcome.path, outcome.name);
      }
      break;
    case RunOutcome::Kind::cancelled:
      result_ =
          QString("%1: cancelled after %2 s").arg(outcome.name, QString::number(outcome.seconds, 'f', 1));
      break;
    case RunOutcome::Kind::failed:
      result_ = QString("%1: failed (exit status %2): %3")
                    .arg(outcome.name, QString::number(outcome.exit_status),
                         outcome.error.left(kMostToldCharacters));
      // Where it is wrong, unless the text has changed since or another one is shown.
      if (request.draft == &draft() && request.text == draft().text() && outcome.line > 0)
        show_error(outcome.line, outcome.column, outcome.error);
      break;
  }
  emit message(result_);
}

// ----- looks

void ScenarioView::lay_out() {
  narrow_ = width() < kRoomForBoth;
  sides_->setVisible(narrow_);
  for (QAction* action : {save_, save_as_, duplicate_}) tools_->removeAction(action);
  if (!narrow_) tools_->insertActions(more_, {save_, save_as_, duplicate_});
  form_->setVisible(!narrow_ || sides_->currentIndex() == 0);
  editor_->setVisible(!narrow_ || sides_->currentIndex() == 1);
}

void ScenarioView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (narrow_ != (width() < kRoomForBoth)) lay_out();
}

void ScenarioView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && check_.is_current()) show_check();
}

}  // namespace rehearse::gui
