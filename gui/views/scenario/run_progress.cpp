#include "gui/views/scenario/run_progress.hpp"

#include <QHBoxLayout>

namespace rehearse::gui {

constexpr int kBarWidth = 160, kMostNameWidth = 400;
constexpr int kSteps = 1000;  // steps of the progress bar

RunProgress::RunProgress(CommandRunner& runner, QWidget* parent)
    : QFrame(parent),
      runner_(&runner),
      told_(new QLabel(this)),
      said_(new QLabel(this)),
      bar_(new QProgressBar(this)),
      cancel_(new QToolButton(this)) {
  setAccessibleName("Prediction in progress");
  setFrameShape(StyledPanel);
  setBackgroundRole(QPalette::Base);
  setAutoFillBackground(true);
  told_->setAccessibleName("Current task");
  told_->setTextFormat(Qt::PlainText);
  QFont bold = told_->font();
  bold.setBold(true);
  told_->setFont(bold);
  said_->setAccessibleName("Output of the program");
  said_->setTextFormat(Qt::PlainText);
  said_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  bar_->setAccessibleName("Progress");
  bar_->setFixedWidth(kBarWidth);
  bar_->setTextVisible(false);
  cancel_->setText("Cancel");
  cancel_->setToolTip("Cancel this task; queued tasks continue");
  cancel_->setFocusPolicy(Qt::StrongFocus);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(10, 3, 10, 3);
  layout->setSpacing(12);
  layout->addWidget(told_);
  layout->addWidget(said_, 1);
  layout->addWidget(bar_);
  layout->addWidget(cancel_);
  hide();
  connect(cancel_, &QToolButton::clicked, this, [this] { runner_->cancel(runner_->running_id()); });
  connect(&runner, &CommandRunner::progressed, this, &RunProgress::follow);
}

void RunProgress::follow() {
  if (!runner_->busy()) {
    if (runner_->queued() == 0) hide();  // otherwise the next one starts at once
    return;
  }
  if (isHidden() && runner_->elapsed_s() < kShownAfter_s) return;
  const QFontMetrics metrics(told_->font());
  QString text = QString("%1, %2 s")
                     .arg(metrics.elidedText(runner_->doing(), Qt::ElideMiddle, kMostNameWidth),
                          QString::number(runner_->elapsed_s(), 'f', 0));
  if (runner_->queued() > 0) text += QString(", %1 queued").arg(runner_->queued());
  told_->setText(text);
  told_->setToolTip(runner_->running_name());
  said_->setText(said_->fontMetrics().elidedText(runner_->last_line(), Qt::ElideRight, said_->width()));
  said_->setToolTip(runner_->last_line());
  const double share = runner_->share();
  bar_->setRange(0, share < 0 ? 0 : kSteps);  // a range of 0 shows a busy indicator
  if (share >= 0) bar_->setValue(static_cast<int>(share * kSteps));
  show();
}

void RunProgress::resizeEvent(QResizeEvent* event) {
  QFrame::resizeEvent(event);
  if (!runner_) return;
  said_->setText(said_->fontMetrics().elidedText(runner_->last_line(), Qt::ElideRight, said_->width()));
}

}  // namespace rehearse::gui
