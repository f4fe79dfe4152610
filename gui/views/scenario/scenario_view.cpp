#include "gui/views/scenario/scenario_view.hpp"

#include <fmt/format.h>

#include <QAbstractSpinBox>
#include <QAction>
#include <QApplication>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QJsonDocument>
#include <QJsonObject>
#include <QKeyEvent>
#include <QLineEdit>
#include <QMenu>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/models/runs/run_list.hpp"
#include "gui/models/scenario/scenario_difference.hpp"
#include "gui/models/scenario/scenario_fields.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/scenario/scenario_editor.hpp"
#include "gui/views/scenario/scenario_form.hpp"
#include "simulator/report/format.hpp"

namespace rehearse::gui {
namespace {

constexpr int kRoomForBoth = 700;               // pixels that form and text need side by side
constexpr qsizetype kMostToldCharacters = 300;  // of a message; the tooltip has all of it

QString result_line(const RunOutcome& outcome) {
  const QJsonObject json = QJsonDocument::fromJson(outcome.json).object();
  const double samples = json["samples_per_s"].toDouble();
  QString line = QString("%1: %2 a step").arg(outcome.name, step_text(json["step_time_s"].toDouble()));
  if (samples > 0) line += QString::fromStdString(fmt::format(", {} samples/s", with_prefix(samples)));
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
  connect(&session_, &Session::current_changed, this, &ScenarioView::follow_current);
  connect(&session_, &Session::runs_changed, this, &ScenarioView::tell_run);
  connect(&session_, &Session::run_changed, this, &ScenarioView::follow_changed);
  follow_current();
  show_progress();
  lay_out();
}

ScenarioView::~ScenarioView() {
  tabs_->disconnect(this);
  delete editor_;  // before the drafts that it refers to
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
              "Search for the parallelization that trains this model fastest on this cluster", &V::plan);
  cancel_ = add("&Cancel", "&Run", Qt::CTRL | Qt::Key_Period,
                "Cancel the running and queued predictions and searches", &V::cancel);
  duplicate_ =
      add("&Duplicate run", "&Run", Qt::CTRL | Qt::Key_D,
          "Open the scenario of the current run, to change it and run it again", &V::duplicate_current);
  take_ =
      add("Ta&ke scenario of run", "&Run", Qt::CTRL | Qt::SHIFT | Qt::Key_I,
          "Show the scenario of the current run; Undo brings changes of it back, other scenarios stay open",
          &V::take_run);
  new_ = add("&New scenario", "&File", Qt::CTRL | Qt::Key_N, "Create a new scenario", &V::new_draft);
  open_ = add("Open &scenario...", "&File", Qt::CTRL | Qt::SHIFT | Qt::Key_O, "Open a scenario file",
              &V::choose_file);
  save_ = add("&Save scenario", "&File", Qt::CTRL | Qt::Key_S, "Write the scenario to its file", &V::save);
  save_as_ = add("Save scenario &as...", "&File", Qt::CTRL | Qt::SHIFT | Qt::Key_S,
                 "Write the scenario to another file", &V::save_as);
  close_ = add("&Close scenario", "&File", Qt::CTRL | Qt::Key_W, "Close this scenario", &V::close_current);
  reopen_ = add("Re&open closed scenario", "&File", Qt::CTRL | Qt::SHIFT | Qt::Key_T,
                "Reopen the scenario that was closed last", &V::reopen);
  undo_ = add("&Undo", "&Edit", QKeySequence(Qt::CTRL | Qt::Key_Z), "Undo the last change of the scenario",
              &V::undo);
  redo_ = add("&Redo", "&Edit", QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Z),
              "Redo the change that was undone", &V::redo);
  find_ = add("Find a &setting", "&Edit", Qt::CTRL | Qt::SHIFT | Qt::Key_F,
              "Search for a field of the form, or for any key that a scenario can have", &V::find_setting);
  error_ = add("&Go to the error", "&Go", Qt::Key_F8, "Show what is wrong in the scenario's text",
               &V::go_to_error);
  for (QAction* action : {save_, save_as_, close_})
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  qApp->installEventFilter(this);
  // Use short texts in the tool bar, which has little room.
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
  tools_->addAction(open_);  // lay_out() adds the others
  auto* more = new QToolButton(tools_);
  more->setText("More");
  more->setToolTip("Show more commands for the scenario");
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
  tabs_->setElideMode(Qt::ElideNone);  // tabs scroll instead; tell_drafts() shortens their names
  tabs_->setUsesScrollButtons(true);
  connect(tabs_, &QTabBar::currentChanged, this, &ScenarioView::show_draft);
  connect(tabs_, &QTabBar::tabCloseRequested, this, &ScenarioView::ask_and_close);

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
    if (!link.startsWith("suggestion")) return go_to_error();
    const auto suggestions = draft().suggestions(error_line_, error_column_, told_->toolTip());
    const auto place = static_cast<std::size_t>(link.section(':', 1).toUInt());
    if (place >= suggestions.size()) return;
    const ScenarioDraft::Suggestion* suggestion = &suggestions[place];
    draft().change(suggestion->edit);
    sides_->setCurrentIndex(1);
    editor_->go_to_place(suggestion->edit.begin + static_cast<int>(suggestion->edit.text.size()));
  });
  progress_ = line("Progress and result of the run");
  progress_->setTextFormat(Qt::PlainText);
  progress_->setTextInteractionFlags(Qt::TextSelectableByMouse);

  whose_row_ = new QWidget(this);
  auto* whose = new QHBoxLayout(whose_row_);
  whose->setContentsMargins(0, 0, 6, 0);
  whose_ = line("Whose scenario this is");
  whose_->setTextFormat(Qt::RichText);
  whose->addWidget(whose_, 1);
  auto* take = new QToolButton(whose_row_);
  take->setDefaultAction(take_);
  take->setToolButtonStyle(Qt::ToolButtonTextOnly);
  whose->addWidget(take);
  connect(take_, &QAction::changed, take, [this, take] { take->setVisible(take_->isEnabled()); });

  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(tools_);
  layout->addWidget(tabs_);
  layout->addWidget(whose_row_);
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

// ----- the check

void ScenarioView::check_draft() {
  check_.set_text(draft().text(), draft().folder());
  follow_undo();
  tell_run();
}

void ScenarioView::follow_undo() {
  undo_->setEnabled(draft().document().isUndoAvailable());
  redo_->setEnabled(draft().document().isRedoAvailable());
}

void ScenarioView::show_check() {
  if (!check_.is_current()) return;
  const CheckedScenario& checked = check_.result();
  form_->show_check(checked);
  if (!checked.ok) return show_error(checked.line, checked.column, checked.message);
  if (refusal_.line > 0 && refusal_.text == draft().text() && refusal_.folder == draft().folder())
    return show_error(refusal_.line, refusal_.column, refusal_.why);
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
  const auto suggestions = draft().suggestions(line, column, what);
  const qsizetype most = !suggestions.empty() ? kMostToldCharacters / 3 : kMostToldCharacters;
  const QString shown = what.size() > most ? what.left(most) + "..." : what;
  const QString place = line > 0 ? QString("<a href=\"error\" style=\"color:%1\">Line %2, column %3</a>: ")
                                       .arg(colour)
                                       .arg(line)
                                       .arg(column)
                                 : QString("<span style=\"color:%1\">Error</span>: ").arg(colour);
  QString text = place + shown.toHtmlEscaped();
  for (std::size_t i = 0; i < suggestions.size(); ++i)
    text +=
        QString(" <a href=\"suggestion:%1\" style=\"color:%2\">%3 %4</a>")
            .arg(i)
            .arg(colours.color(QPalette::Link).name(), i == 0 ? "Change it to" : "or", suggestions[i].name);
  told_->setText(text);
  told_->setToolTip(what);
}

void ScenarioView::find_setting() {
  sides_->setCurrentIndex(0);
  form_->find();
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
  start(&draft(), {draft().text(), unused_name(named_by_difference(draft()), true), draft().folder()});
  draft().set_last_run(draft().text());
}

// Does not require a valid scenario: the search replaces a strategy that cannot run.
void ScenarioView::plan() {
  form_->commit();
  start(&draft(), {draft().text(), draft().name(), draft().folder(), Task::plan});
}

void ScenarioView::run_text(const QString& text, const QString& name, const QString& folder,
                            const QStringList& settings) {
  RunRequest request{text, unused_name(name, true), folder};
  request.settings = settings;
  start(nullptr, request);
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
    text = runner_.busy()
               ? QString("%1: %2 s").arg(runner_.doing(), QString::number(runner_.elapsed_s(), 'f', 1))
               : QString("Starting...");
    if (runner_.busy() && runner_.queued() > 0) text += QString(", %1 queued").arg(runner_.queued());
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
        result_ = QString("%1: found the best plan in %2 s")
                      .arg(outcome.name, QString::number(outcome.seconds, 'f', 1));
        emit plans_made(outcome.path, outcome.name);
      } else {
        result_ = result_line(outcome);
        if (request.draft) made_[outcome.path] = request;
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
      // Mark the error in the text, unless the text has changed since or another draft is shown.
      if (request.draft == &draft() && request.text == draft().text() && outcome.line > 0) {
        refusal_ = {request.text, draft().folder(), outcome.error, outcome.line, outcome.column};
        show_error(outcome.line, outcome.column, outcome.error);
      }
      break;
  }
  emit message(result_);
}

// ----- appearance

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

bool ScenarioView::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() != QEvent::ShortcutOverride) return QWidget::eventFilter(watched, event);
  auto* key = static_cast<QKeyEvent*>(event);
  const bool undo = key->matches(QKeySequence::Undo), redo = key->matches(QKeySequence::Redo);
  auto* widget = qobject_cast<QWidget*>(watched);
  if (!(undo || redo) || !widget) return false;
  // A line edit consumes these keys even if it has nothing to undo.
  const auto* line = qobject_cast<QLineEdit*>(widget);
  if (!line && (qobject_cast<QComboBox*>(widget) || qobject_cast<QAbstractSpinBox*>(widget)))
    line = widget->findChild<QLineEdit*>();
  if (!line || (undo ? line->isUndoAvailable() : line->isRedoAvailable())) return false;
  event->ignore();
  return true;
}

void ScenarioView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && check_.is_current()) show_check();
}

}  // namespace rehearse::gui
