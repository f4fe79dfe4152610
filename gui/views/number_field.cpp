#include "gui/views/number_field.hpp"

#include <QKeyEvent>
#include <QLineEdit>
#include <QStyle>
#include <QWheelEvent>
#include <algorithm>

namespace rehearse::gui {

constexpr qsizetype kMostDigits = 12;

NumberField::NumberField(QWidget* parent) : QAbstractSpinBox(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setKeyboardTracking(false);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  connect(this, &QAbstractSpinBox::editingFinished, this, &NumberField::commit);
}

void NumberField::show_value(const QString& text, const QString& usual) {
  lineEdit()->setPlaceholderText(usual);
  if (hasFocus() && lineEdit()->text() != shown_) return;  // something is being typed
  shown_ = text;
  if (lineEdit()->text() != text) lineEdit()->setText(text);
}

void NumberField::commit() {
  const QString text = lineEdit()->text();
  if (text == shown_) return;
  shown_ = text;
  emit edited(text);
}

void NumberField::stepBy(int steps) {
  const QString from = lineEdit()->text().isEmpty() ? lineEdit()->placeholderText() : lineEdit()->text();
  qint64 value = std::max<qint64>(1, from.toLongLong());
  for (; steps > 0; --steps) value = std::min<qint64>(2 * value, 999'999'999'999);
  for (; steps < 0 && value > 1; ++steps) value = value % 2 == 0 ? value / 2 : value - 1;
  lineEdit()->setText(QString::number(value));
  lineEdit()->selectAll();
  commit();
}

QValidator::State NumberField::validate(QString& input, int&) const {
  const bool digits = std::all_of(input.begin(), input.end(), [](QChar c) { return c >= '0' && c <= '9'; });
  return digits && input.size() <= kMostDigits ? QValidator::Acceptable : QValidator::Invalid;
}

QSize NumberField::sizeHint() const {
  return minimumSizeHint();
}

QSize NumberField::minimumSizeHint() const {
  const int width = fontMetrics().horizontalAdvance(QString(6, '0')) + fontMetrics().height() * 2;
  return {width, QAbstractSpinBox::minimumSizeHint().height()};
}

void NumberField::wheelEvent(QWheelEvent* event) {
  event->ignore();  // scrolls the form
}

bool NumberField::event(QEvent* event) {
  // What has been told is undone in the text of the scenario, not in this field.
  if (event->type() == QEvent::ShortcutOverride && lineEdit()->text() == shown_) {
    auto* key = static_cast<QKeyEvent*>(event);
    if (key->matches(QKeySequence::Undo) || key->matches(QKeySequence::Redo)) {
      event->ignore();
      return true;
    }
  }
  return QAbstractSpinBox::event(event);
}

}  // namespace rehearse::gui
