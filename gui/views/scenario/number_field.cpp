#include "gui/views/scenario/number_field.hpp"

#include <QKeyEvent>
#include <QLineEdit>
#include <QStyle>
#include <QWheelEvent>
#include <algorithm>

namespace rehearse::gui {

namespace {

constexpr qsizetype kMostDigits = 12, kMostCharacters = 24;
constexpr qint64 kMostWhole = 999'999'999'999;

// Completes a number to valid TOML: ".5" becomes "0.5" and "5." becomes "5.0".
QString as_toml(QString text) {
  if (text.startsWith('.')) text.prepend('0');
  if (text.endsWith('.')) text += '0';
  return text;
}

}  // namespace

NumberField::NumberField(Kind kind, QWidget* parent) : QAbstractSpinBox(parent), kind_(kind) {
  setFocusPolicy(Qt::StrongFocus);
  setKeyboardTracking(false);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  colour_default();
  connect(this, &QAbstractSpinBox::editingFinished, this, &NumberField::commit);
}

void NumberField::show_value(const QString& text, const QString& usual, const QString& absent) {
  usual_ = usual;
  lineEdit()->setPlaceholderText(absent);
  if (hasFocus() && lineEdit()->text() != shown_) return;  // the user is typing
  shown_ = text;
  if (lineEdit()->text() != text) lineEdit()->setText(text);
}

QString NumberField::shown_default() const {
  return lineEdit()->placeholderText();
}

// Shows the default in the normal text colour, because it is as valid as an entered value and as often read.
void NumberField::colour_default() {
  QPalette colours = palette();
  for (const auto group : {QPalette::Active, QPalette::Inactive})
    colours.setColor(group, QPalette::PlaceholderText, colours.color(group, QPalette::Text));
  if (lineEdit()->palette() != colours) lineEdit()->setPalette(colours);
}

void NumberField::changeEvent(QEvent* event) {
  QAbstractSpinBox::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && lineEdit()) colour_default();
}

void NumberField::commit() {
  if (lineEdit()->text() == shown_) return;
  lineEdit()->setText(as_toml(lineEdit()->text()));
  shown_ = lineEdit()->text();
  emit edited(shown_);
}

QString NumberField::stepped(const QString& from, int steps) const {
  if (kind_ == Kind::decimal) {
    double value = from.toDouble();
    for (; steps > 0; --steps) value = value > 0 ? 2 * value : 1;
    for (; steps < 0; ++steps) value /= 2;
    return QString::number(value, 'g', 12).remove('+');
  }
  qint64 value = std::max<qint64>(1, from.toLongLong());
  for (; steps > 0; --steps) value = std::min(2 * value, kMostWhole);
  for (; steps < 0 && value > 1; ++steps) value = value % 2 == 0 ? value / 2 : value - 1;
  return QString::number(value);
}

void NumberField::stepBy(int steps) {
  lineEdit()->setText(stepped(lineEdit()->text().isEmpty() ? usual_ : lineEdit()->text(), steps));
  lineEdit()->selectAll();
  commit();
}

QValidator::State NumberField::validate(QString& input, int&) const {
  const bool decimal = kind_ == Kind::decimal;
  const QString more = decimal ? ".eE+-" : "";
  const bool right = std::all_of(input.begin(), input.end(),
                                 [&](QChar c) { return (c >= '0' && c <= '9') || more.contains(c); });
  return right && input.size() <= (decimal ? kMostCharacters : kMostDigits) ? QValidator::Acceptable
                                                                            : QValidator::Invalid;
}

QSize NumberField::sizeHint() const {
  return minimumSizeHint();
}

QSize NumberField::minimumSizeHint() const {
  const int width = fontMetrics().horizontalAdvance(QString(6, '0')) + fontMetrics().height() * 2;
  return {width, QAbstractSpinBox::minimumSizeHint().height()};
}

void NumberField::wheelEvent(QWheelEvent* event) {
  event->ignore();  // let the form scroll instead
}

bool NumberField::event(QEvent* event) {
  // Once the text has been committed, undo works on the text of the scenario instead of this field.
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
