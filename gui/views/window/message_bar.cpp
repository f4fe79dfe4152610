#include "gui/views/window/message_bar.hpp"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QStyle>
#include <QTextBlock>
#include <QToolButton>
#include <algorithm>

namespace rehearse::gui {
namespace {

constexpr int kMostLines = 8;  // visible lines; further ones need scrolling
constexpr int kMostMessages = 50;

}  // namespace

MessageBar::MessageBar(QWidget* parent) : QFrame(parent) {
  setObjectName("messages");
  setAccessibleName(tr("Messages"));
  setFrameShape(QFrame::StyledPanel);
  auto* line = new QHBoxLayout(this);
  line->setContentsMargins(8, 4, 4, 4);
  auto* sign = new QLabel(this);
  sign->setPixmap(style()->standardIcon(QStyle::SP_MessageBoxWarning).pixmap(16, 16));
  sign->setAccessibleName(tr("Error"));
  line->addWidget(sign, 0, Qt::AlignTop);
  text_ = new QPlainTextEdit(this);
  text_->setAccessibleName(tr("Error messages"));
  text_->setReadOnly(true);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  text_->setFrameShape(QFrame::NoFrame);
  text_->setTabChangesFocus(true);
  text_->setWordWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
  text_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  text_->document()->setDocumentMargin(0);
  text_->viewport()->setAutoFillBackground(false);
  line->addWidget(text_, 1);
  auto* close = new QToolButton(this);
  close->setText(tr("Dismiss"));
  close->setToolTip(tr("Hide these messages (Esc)"));
  close->setAccessibleName(tr("Dismiss the messages"));
  for (QWidget* widget : {static_cast<QWidget*>(text_), static_cast<QWidget*>(close)})
    widget->installEventFilter(this);
  connect(close, &QToolButton::clicked, this, &MessageBar::dismiss);
  line->addWidget(close, 0, Qt::AlignTop);
  hide();
}

void MessageBar::add(const QString& message) {
  messages_.removeAll(message);  // moves a repeated message to the end
  messages_ << message;
  while (messages_.size() > kMostMessages) messages_.removeFirst();
  text_->setPlainText(messages_.join('\n'));
  setAccessibleDescription(message);
  show();
  fit_height();
  text_->verticalScrollBar()->setValue(text_->verticalScrollBar()->maximum());
}

void MessageBar::dismiss() {
  messages_.clear();
  text_->clear();
  setAccessibleDescription({});
  hide();
}

QString MessageBar::text() const {
  return text_->toPlainText();
}

void MessageBar::fit_height() {
  int lines = 0;
  for (QTextBlock block = text_->document()->begin(); block.isValid(); block = block.next())
    lines += std::max(1, block.layout()->lineCount());
  text_->setFixedHeight(std::clamp(lines, 1, kMostLines) * text_->fontMetrics().lineSpacing() + 4);
}

void MessageBar::resizeEvent(QResizeEvent* event) {
  QFrame::resizeEvent(event);
  fit_height();
}

bool MessageBar::eventFilter(QObject* watched, QEvent* event) {
  const bool escape = (event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress) &&
                      static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape;
  if (!escape) return QFrame::eventFilter(watched, event);
  event->accept();  // before the window handles Esc itself
  if (event->type() == QEvent::KeyPress) dismiss();
  return true;
}

}  // namespace rehearse::gui
