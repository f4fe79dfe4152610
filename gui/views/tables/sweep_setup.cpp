#include "gui/views/tables/sweep_setup.hpp"

#include <QAction>
#include <QBoxLayout>
#include <QComboBox>
#include <QCompleter>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>
#include <QToolButton>
#include <thread>

#include "gui/models/scenario/scenario_check.hpp"
#include "gui/models/tables/sweep_setup.hpp"
#include "gui/models/work/background.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/parts/command.hpp"

namespace rehearse::gui {
namespace {

constexpr int kWide = 1000;  // pixels; from this width on, all controls fit in one line

}  // namespace

SweepSetup::SweepSetup(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Set up a sweep"));
  setMinimumWidth(240);  // fits the widest control
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(4, 4, 4, 0);
  all->setSpacing(4);
  groups_ = new QBoxLayout(QBoxLayout::TopToBottom);
  groups_->setSpacing(6);
  groups_->addWidget(make_axis(axes_[0], tr("&Vary"), tr("first")), 1);
  groups_->addWidget(make_axis(axes_[1], tr("a&nd"), tr("second")), 1);

  auto* controls = new QHBoxLayout;
  auto* label = new QLabel(tr("&Jobs"), this);
  jobs_ = new QSpinBox(this);
  jobs_->setRange(1, 4096);
  jobs_->setValue(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  jobs_->setAccessibleName(tr("Simulations that run at once"));
  jobs_->findChild<QLineEdit*>()->setAccessibleName(jobs_->accessibleName());
  jobs_->setToolTip(tr("Simulations that run at once"));
  label->setBuddy(jobs_);
  controls->addWidget(label);
  controls->addWidget(jobs_);
  run_ = add_command(
      *this,
      {menu::trials,
       tr("Run the s&weep"),
       {QKeySequence("Ctrl+Alt+R")},
       tr("Predict the open scenario with every combination of the values")},
      [this] { run(); }, Qt::WindowShortcut);
  cancel_ = add_command(
      *this,
      {menu::trials,
       tr("Cancel the sw&eep"),
       {QKeySequence("Ctrl+Alt+.")},
       tr("Cancel the sweep and keep the points so far")},
      [this] { cancel(); }, Qt::WindowShortcut);
  run_->setIconText(tr("Run sweep"));
  cancel_->setIconText(tr("Cancel"));
  cancel_->setEnabled(false);
  controls_ = controls;
  for (QAction* action : {run_, cancel_}) add_button(action);
  controls->addStretch(1);
  groups_->addLayout(controls);
  all->addLayout(groups_);
  told_ = new QLabel(this);
  told_->setWordWrap(true);
  told_->setTextFormat(Qt::PlainText);
  told_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  told_->setAccessibleName(tr("Progress of the sweep"));
  told_->hide();
  all->addWidget(told_);

  connect(&runner_, &CommandRunner::progressed, this, &SweepSetup::follow);
  connect(&runner_, &CommandRunner::finished, this, &SweepSetup::end);
}

QWidget* SweepSetup::make_axis(Axis& axis, const QString& text, const QString& which) {
  auto* group = new QWidget(this);
  auto* row = new QHBoxLayout(group);
  row->setContentsMargins(0, 0, 0, 0);
  auto* label = new QLabel(text, group);
  axis.key = new QComboBox(group);
  axis.key->setEditable(true);
  axis.key->setInsertPolicy(QComboBox::NoInsert);
  axis.key->setMinimumContentsLength(16);
  axis.key->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  axis.key->setAccessibleName(tr("Key of the scenario that varies, %1").arg(which));
  axis.key->setToolTip(tr("Key of the scenario that varies; type a part of it to find it"));
  axis.key->lineEdit()->setAccessibleName(axis.key->accessibleName());
  axis.key->lineEdit()->setPlaceholderText(tr("key"));
  axis.key->completer()->setCompletionMode(QCompleter::PopupCompletion);
  axis.key->completer()->setFilterMode(Qt::MatchContains);
  axis.key->addItem(QString());
  axis.key->addItems(sweep_keys({}));
  label->setBuddy(axis.key);
  axis.values = new QLineEdit(group);
  axis.values->setAccessibleName(tr("Its values, %1").arg(which));
  axis.values->setPlaceholderText(tr("1,2,4 or 1..16*2"));
  axis.values->setToolTip(
      tr("Values with commas between them, or a range: 1..8 (every number), 0..64+16 (steps of 16), 1..64*2 "
         "(each twice the previous one)"));
  axis.values->setMinimumWidth(90);
  row->addWidget(label);
  row->addWidget(axis.key, 3);
  row->addWidget(axis.values, 2);
  connect(axis.key, &QComboBox::currentTextChanged, this, [this, &axis] { propose(axis); });
  connect(axis.values, &QLineEdit::returnPressed, this, &SweepSetup::run);
  return group;
}

void SweepSetup::add_button(QAction* action) {
  auto* button = new QToolButton(this);
  button->setDefaultAction(action);
  button->setAccessibleName(action->iconText());
  const int behind =
      controls_->count() > 0 && controls_->itemAt(controls_->count() - 1)->spacerItem() ? 1 : 0;
  controls_->insertWidget(controls_->count() - behind, button);
}

void SweepSetup::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  read_keys();
}

// Lists all keys of scenarios when the form is first shown, because that takes a while.
void SweepSetup::read_keys() {
  if (reads_keys_) return;
  reads_keys_ = true;
  in_background(
      this, [] { return scenario_keys(); },
      [this](std::shared_ptr<const std::vector<ScenarioKey>> keys) {
        keys_ = std::move(keys);
        for (Axis& axis : axes_) {
          const QSignalBlocker quiet(axis.key);
          const QString text = axis.key->currentText();
          axis.key->clear();
          axis.key->addItem(QString());
          axis.key->addItems(sweep_keys(*keys_));
          axis.key->setCurrentIndex(axis.key->findText(text));
          axis.key->setEditText(text);
        }
      });
}

// Proposes values around the scenario's own unless the user has typed some.
void SweepSetup::propose(Axis& axis) {
  if (!axis.values->text().isEmpty() && axis.values->text() != axis.proposed) return;
  const QString key = axis.key->currentText();
  const RunRequest now = scenario_();
  in_background(
      this,
      [key, text = now.text, folder = now.folder] {
        return proposed_values(key, check_scenario(text, folder).values, *scenario_keys());
      },
      [&axis, key](const QString& values) {
        if (axis.key->currentText() != key) return;
        if (!axis.values->text().isEmpty() && axis.values->text() != axis.proposed) return;
        axis.proposed = values;
        axis.values->setText(values);
      });
}

void SweepSetup::set_key(int place, const QString& key) {
  axes_[static_cast<std::size_t>(place)].key->setCurrentText(key);
}

void SweepSetup::set_values(int place, const QString& values) {
  axes_[static_cast<std::size_t>(place)].values->setText(values);
}

void SweepSetup::run() {
  if (busy()) return;
  RunRequest request = scenario_();
  request.task = Task::sweep;
  request.jobs = jobs_->value();
  for (const Axis& axis : axes_) {
    const QString key = axis.key->currentText().trimmed(), values = axis.values->text().trimmed();
    // A request with values but no key, or the reverse, is passed on, because its error message names the
    // key.
    if (!key.isEmpty() || (!values.isEmpty() && values != axis.proposed))
      request.varied << key + '=' + values;
  }
  swept_ = request;
  known_bytes_ = 0;
  runner_.start(request);
  follow();
}

void SweepSetup::follow() {
  run_->setEnabled(!busy());
  cancel_->setEnabled(busy());
  if (!runner_.busy()) return;
  const QString path = runner_.running_path();
  const qint64 bytes = QFileInfo(path).size();
  tell(tr("Sweeping %1: %2 s").arg(runner_.running_name(), QString::number(runner_.elapsed_s(), 'f', 1)),
       false);
  if (bytes == known_bytes_) return;
  known_bytes_ = bytes;
  emit grown(path);
}

void SweepSetup::end(const RunOutcome& outcome) {
  switch (outcome.kind) {
    case RunOutcome::Kind::done:
      tell(outcome.told, outcome.exit_status != 0);  // the exit status is nonzero if some points failed
      break;
    case RunOutcome::Kind::cancelled:
      tell(tr("Cancelled after %1 s").arg(QString::number(outcome.seconds, 'f', 1)) +
               (outcome.path.isEmpty() ? QString() : tr("; the points so far are kept")),
           false);
      break;
    case RunOutcome::Kind::failed:
      tell(outcome.line > 0
               ? tr("Line %1, column %2: %3").arg(outcome.line).arg(outcome.column).arg(outcome.error)
               : outcome.error,
           true);
      break;
  }
  emit ended(outcome);
}

void SweepSetup::tell(const QString& text, bool wrong) {
  wrong_ = wrong;
  QPalette colours = palette();
  if (wrong) colours.setColor(QPalette::WindowText, critical_colour(is_dark(colours)));
  told_->setPalette(colours);
  told_->setText(text);
  told_->setVisible(!text.isEmpty());
}

void SweepSetup::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && told_ != nullptr) tell(told_->text(), wrong_);
}

void SweepSetup::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  groups_->setDirection(width() < kWide ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
}

}  // namespace rehearse::gui
