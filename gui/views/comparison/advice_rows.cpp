#include "gui/views/comparison/advice_rows.hpp"

#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QRegularExpression>
#include <QVBoxLayout>

#include "gui/models/scenario/scenario_difference.hpp"

namespace rehearse::gui {
namespace {

QString sentence(const QString& text) {
  return text.isEmpty() ? text : text.left(1).toUpper() + text.mid(1);
}

// Returns the reason for the advice ("2 virtual stages would leave 47 of 431") or, without one, its settings.
QString told(const AdviceTrial& trial) {
  QString text = QString::fromStdString(trial.advice.why);
  if (text.isEmpty()) text = settings_name(trial.settings);
  if (!trial.advice.or_else.empty())
    text += QObject::tr(" (or ") + QString::fromStdString(trial.advice.or_else) + ")";
  return sentence(text);
}

}  // namespace

AdviceRows::AdviceRows(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Advice"));
  grid_ = new QGridLayout(this);
  grid_->setContentsMargins(0, 0, 0, 0);
  grid_->setHorizontalSpacing(8);
  grid_->setVerticalSpacing(4);
  grid_->setColumnStretch(0, 1);
  title_ = new QLabel(tr("<b>Advice</b>"), this);
  grid_->addWidget(title_, 0, 0, 1, 2);
  waiting_ = new QLabel(this);
  waiting_->setWordWrap(true);
  waiting_->setAccessibleName(tr("Advice that is being simulated"));
  grid_->addWidget(waiting_, 1, 0, 1, 2);
  hide();
}

void AdviceRows::show_rows(std::size_t count) {
  while (rows_.size() < count) {
    const auto place = static_cast<int>(rows_.size());
    Row row;
    row.text = new QLabel(this);
    row.text->setWordWrap(true);
    row.text->setTextFormat(Qt::RichText);
    row.text->setTextInteractionFlags(Qt::TextSelectableByMouse);
    row.text->setMinimumWidth(80);
    row.button = new QPushButton(tr("Try it"), this);
    row.button->setAutoDefault(true);  // so that Enter presses it
    connect(row.button, &QPushButton::clicked, this,
            [this, place] { emit try_requested(rows_[static_cast<std::size_t>(place)].advice); });
    row.change = new QPushButton(tr("Put in form"), this);
    row.change->setAutoDefault(true);
    connect(row.change, &QPushButton::clicked, this,
            [this, place] { emit change_requested(rows_[static_cast<std::size_t>(place)].advice); });
    auto* buttons = new QVBoxLayout;
    buttons->setSpacing(2);
    buttons->addWidget(row.button);
    buttons->addWidget(row.change);
    buttons->addStretch(1);
    grid_->addWidget(row.text, place + 2, 0, Qt::AlignTop);
    grid_->addLayout(buttons, place + 2, 1);
    rows_.push_back(row);
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].text->setVisible(i < count);
    rows_[i].button->setVisible(i < count);
    rows_[i].change->setVisible(i < count);
  }
  title_->setVisible(count > 0);
  setVisible(count > 0 || !waiting_->text().isEmpty());
}

void AdviceRows::show_trials(const Run& run, const std::vector<AdviceTrial>& trials, bool coming) {
  std::vector<int> shown;
  int waiting = 0;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const bool known =
        trials[i].state == AdviceTrial::State::done || trials[i].state == AdviceTrial::State::failed;
    if (known || !coming)
      shown.push_back(static_cast<int>(i));
    else
      ++waiting;
  }
  waiting_->setText(waiting == 0   ? QString()
                    : waiting == 1 ? tr("One change that may help is being simulated...")
                                   : tr("%1 changes that may help are being simulated...").arg(waiting));
  waiting_->setVisible(waiting > 0);
  show_rows(shown.size());
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const AdviceTrial& trial = trials[static_cast<std::size_t>(shown[i])];
    Row& row = rows_[i];
    row.advice = shown[i];
    const Verdict verdict = verdict_on(run, trial);
    const QString what = told(trial), outcome = outcome_text(run, trial);
    QString text = what.toHtmlEscaped();
    if (verdict == Verdict::worse || verdict == Verdict::same)
      text += tr(". Tried: ") + outcome.toHtmlEscaped();
    else if (!outcome.isEmpty())
      text += ": <b>" + outcome.toHtmlEscaped() + "</b>";
    row.text->setText(text + '.');
    const QString settings = trial.settings.join(", ");
    row.text->setToolTip(settings);
    row.button->setVisible(trial.state != AdviceTrial::State::failed);
    row.button->setAccessibleName(tr("Try it: %1").arg(settings_name(trial.settings)));
    row.button->setAccessibleDescription(outcome);
    row.button->setToolTip(tr("Open a run with %1 next to this one and compare them").arg(settings));
    // A list of slow parts is a table of its own in the text.
    const bool is_key = trial.settings.filter(QRegularExpression("^cluster\\.slow")).isEmpty();
    row.change->setVisible(trial.state != AdviceTrial::State::failed && is_key);
    row.change->setAccessibleName(tr("Put in form: %1").arg(settings_name(trial.settings)));
    row.change->setToolTip(
        tr("Change the run's scenario in the form by %1, to change more before it runs").arg(settings));
  }
}

void AdviceRows::try_first() {
  for (const Row& row : rows_)
    if (row.button->isVisibleTo(this)) return row.button->click();
}

}  // namespace rehearse::gui
