#include "gui/views/scenario/form_row.hpp"

#include "gui/views/parts/appearance.hpp"
#include "gui/views/scenario/choice_box.hpp"
#include "gui/views/scenario/number_field.hpp"

namespace rehearse::gui {
namespace {

using FieldKind = ScenarioField::Kind;

QString named(const ScenarioField& field) {
  return field.unit.isEmpty() ? field.label : field.label + ", " + field.unit;
}

}  // namespace

FormRow::FormRow(const ScenarioField& field, QWidget& body)
    : field_(field), label_(new QLabel(named(field), &body)), reset_(new QToolButton(&body)) {
  if (field.kind == FieldKind::choice || field.kind == FieldKind::flag) {
    choice_ = new ChoiceBox(&body);
    choice_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    choice_->setMinimumContentsLength(5);
    choice_->setMaxVisibleItems(20);
    choice_->setFocusPolicy(Qt::StrongFocus);
    choice_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    connect(choice_, &QComboBox::activated, this, [this] { emit edited(choice_->currentData().toString()); });
  } else if (field.kind == FieldKind::number || field.kind == FieldKind::decimal) {
    number_ = new NumberField(
        field.kind == FieldKind::number ? NumberField::Kind::whole : NumberField::Kind::decimal, &body);
    connect(number_, &NumberField::edited, this, &FormRow::edited);
  } else {
    line_ = new QLineEdit(&body);
    connect(line_, &QLineEdit::editingFinished, this, &FormRow::commit_line);
  }
  editor()->setObjectName(field.key);
  editor()->setAccessibleName(named(field));
  label_->setBuddy(editor());
  reset_->setText(QString(QChar(0x00d7)));
  reset_->setAutoRaise(true);
  reset_->setFocusPolicy(Qt::NoFocus);  // with the keyboard, one empties the field instead
  reset_->setAccessibleName("Reset " + field.label + " to its default");
  reset_->setToolTip("Remove it from the text to use the default");
  QSizePolicy keeps_place = reset_->sizePolicy();
  keeps_place.setRetainSizeWhenHidden(true);
  reset_->setSizePolicy(keeps_place);
  reset_->hide();
  connect(reset_, &QToolButton::clicked, this, [this] { emit edited({}); });
}

FormRow::~FormRow() {
  for (QWidget* widget : {static_cast<QWidget*>(label_), editor(), static_cast<QWidget*>(reset_)}) {
    widget->hide();
    widget->deleteLater();
  }
}

QWidget* FormRow::editor() const {
  if (choice_) return choice_;
  return number_ ? static_cast<QWidget*>(number_) : line_;
}

void FormRow::set_visible(bool visible) {
  label_->setVisible(visible);
  editor()->setVisible(visible);
  reset_->setVisible(visible && is_set_);
}

void FormRow::show(const State& state) {
  // Show the value that the default resolves to, marked as the default.
  QString absent = field_.absent.isEmpty() ? QString("default") : field_.absent;
  if (!state.usual.isEmpty()) absent = state.usual + " (default)";
  if (!state.instead.isEmpty()) absent = state.instead;
  if (choice_) show_choice(state, absent);
  if (number_) number_->show_value(state.value.value_or(""), state.usual, absent);
  if (line_) show_line(state, absent);
  const bool used = state.why_unused.isEmpty() || state.value.has_value();
  label_->setEnabled(used);
  editor()->setEnabled(used);
  is_set_ = state.value.has_value();
  reset_->setVisible(is_set_ && !editor()->isHidden());
  QPalette colours = label_->parentWidget()->palette();
  const bool wrong = !state.error.isEmpty();
  if (wrong) colours.setColor(QPalette::WindowText, critical_colour(is_dark(colours)));
  label_->setPalette(colours);
  label_->setText(wrong ? "\u25cf " + named(field_) : named(field_));
  QString tip = wrong ? state.error : field_.tip;
  if (!wrong && !used) tip += ".\n" + state.why_unused;
  label_->setToolTip(tip);
  if (number_ && !wrong) tip += ".\nUp and Down double and halve it; empty means the default.";
  editor()->setToolTip(tip);
}

void FormRow::show_choice(const State& state, const QString& absent) {
  QStringList names = field_.choices;
  // A value in the text that is not among the choices is still shown; the check reports what is wrong with
  // it.
  if (state.value && !names.contains(*state.value)) names << *state.value;
  if (choice_->count() != names.size() + 1 ||
      choice_->itemText(choice_->count() - 1) != names.value(names.size() - 1)) {
    choice_->clear();
    choice_->addItem(absent, QString());
    for (const QString& name : names) choice_->addItem(name, name);
  }
  choice_->setItemText(0, absent);
  choice_->setCurrentIndex(state.value ? static_cast<int>(names.indexOf(*state.value)) + 1 : 0);
}

void FormRow::show_line(const State& state, const QString& absent) {
  QPalette colours = line_->parentWidget()->palette();
  for (const auto group : {QPalette::Active, QPalette::Inactive})
    colours.setColor(group, QPalette::PlaceholderText, colours.color(group, QPalette::Text));
  line_->setPalette(colours);
  line_->setPlaceholderText(absent);
  if (line_->hasFocus() && line_->text() != shown_) return;  // the user is typing
  shown_ = state.value.value_or("");
  // Even if equal: this clears the field's undo history, since undo works on the text of the scenario.
  line_->setText(shown_);
}

void FormRow::commit() {
  if (number_) number_->commit();
  if (line_) commit_line();
}

void FormRow::commit_line() {
  if (line_->text() == shown_) return;
  shown_ = line_->text();
  emit edited(shown_);
}

}  // namespace rehearse::gui
