#include "gui/views/scenario_form.hpp"

#include <QApplication>
#include <QEvent>
#include <QGridLayout>
#include <QStyle>
#include <algorithm>

#include "gui/views/appearance.hpp"
#include "gui/views/number_field.hpp"

namespace rehearse::gui {
namespace {

constexpr int kRefreshMs = 60;  // after the last key that was typed in the text

// Other ways to describe what a preset describes; they go when one is chosen.
QStringList described_otherwise(const QString& key) {
  if (key == "model.preset") return {"model.file", "model.huggingface"};
  if (key == "cluster.preset") return {"cluster.file"};
  return {};
}

QString other_description(const ScenarioDraft& draft, const QString& key) {
  for (const QString& other : described_otherwise(key))
    if (const auto file = draft.value(other)) return *file;
  return {};
}

}  // namespace

ScenarioForm::ScenarioForm(QWidget* parent) : QScrollArea(parent) {
  setAccessibleName("Form of the scenario");
  setWidgetResizable(true);
  setFrameShape(NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  later_.setSingleShot(true);
  later_.setInterval(kRefreshMs);
  connect(&later_, &QTimer::timeout, this, &ScenarioForm::refresh);
  build();
}

void ScenarioForm::build() {
  auto* body = new QWidget(this);
  auto* grid = new QGridLayout(body);
  grid->setContentsMargins(10, 6, 10, 8);
  grid->setHorizontalSpacing(10);
  grid->setVerticalSpacing(4);
  grid->setColumnStretch(1, 1);
  int line = 0;
  QString group;
  for (const ScenarioField& field : scenario_fields()) {
    if (field.group != group) {
      group = field.group;
      auto* title = new QLabel(group, body);
      QFont font = title->font();
      font.setBold(true);
      title->setFont(font);
      if (line > 0) grid->setRowMinimumHeight(line++, 6);
      grid->addWidget(title, line++, 0, 1, 2);
    }
    Row row{&field, new QLabel(field.label, body), nullptr, nullptr};
    row.label->setToolTip(field.tip);
    QWidget* editor = nullptr;
    if (field.kind != ScenarioField::Kind::number) {
      editor = row.choice = new QComboBox(body);
      row.choice->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
      row.choice->setMinimumContentsLength(8);
      row.choice->setMaxVisibleItems(20);
      row.choice->setFocusPolicy(Qt::StrongFocus);
      row.choice->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
      row.choice->installEventFilter(this);
      connect(row.choice, &QComboBox::activated, this, [this, place = rows_.size()] {
        const Row& chosen = rows_[place];
        set_key(chosen, chosen.choice->currentData().toString());
      });
      editor->setToolTip(field.tip);
    } else {
      editor = row.number = new NumberField(body);
      connect(row.number, &NumberField::edited, this,
              [this, place = rows_.size()](const QString& text) { set_key(rows_[place], text); });
      editor->setToolTip(field.tip + ". Up and Down double and halve it; empty: the default.");
    }
    editor->setObjectName(field.key);
    editor->setAccessibleName(field.label);
    row.label->setBuddy(editor);
    grid->addWidget(row.label, line, 0);
    grid->addWidget(editor, line++, 1);
    rows_.push_back(row);
  }
  grid->setRowStretch(line, 1);
  setWidget(body);
}

QWidget* ScenarioForm::field(const QString& key) const {
  for (const Row& row : rows_)
    if (row.field->key == key) return row.choice ? static_cast<QWidget*>(row.choice) : row.number;
  return nullptr;
}

void ScenarioForm::set_draft(ScenarioDraft& draft) {
  disconnect(connection_);
  draft_ = &draft;
  usual_.clear();
  checked_ = {};
  connection_ = connect(draft_, &ScenarioDraft::text_changed, &later_, qOverload<>(&QTimer::start));
  refresh();
}

void ScenarioForm::show_check(const CheckedScenario& checked) {
  checked_ = checked;
  if (checked.ok) usual_ = checked.values;
  refresh();
}

void ScenarioForm::commit() {
  for (const Row& row : rows_)
    if (row.number) row.number->commit();
}

QString ScenarioForm::gradients() const {
  return draft_->value("strategy.gradients").value_or(usual_.value("strategy.gradients"));
}

void ScenarioForm::set_key(const Row& row, const QString& value) {
  if (!draft_) return;
  const QString key = field_key(*row.field, gradients());
  if (value.isEmpty())
    draft_->remove(key);
  else if (row.field->kind == ScenarioField::Kind::choice)
    draft_->set_string(key, value, described_otherwise(key));
  else
    draft_->set_number(key, value);
  refresh();
}

void ScenarioForm::refresh_choice(const Row& row, const QString& key) {
  QComboBox& box = *row.choice;
  const auto value = draft_->value(key);
  const QString other = other_description(*draft_, key);
  const QString usual = usual_.value(key);
  QString absent = !other.isEmpty() ? other : usual;
  if (absent.isEmpty()) absent = key == "strategy.preset" ? "none" : "default";
  QStringList names = row.field->choices;
  // What the text says and nobody offers: shown as it is, the check tells what is wrong with it.
  if (value && !names.contains(*value)) names << *value;
  // An absent key is the first entry, greyed, with what it comes to.
  const QColor grey = palette().color(QPalette::PlaceholderText);
  if (box.count() != names.size() + 1 || box.itemText(box.count() - 1) != names.value(names.size() - 1)) {
    box.clear();
    box.addItem(absent, QString());
    for (const QString& name : names) box.addItem(name, name);
  }
  box.setItemText(0, absent);
  box.setItemData(0, grey, Qt::ForegroundRole);
  box.setCurrentIndex(value ? static_cast<int>(names.indexOf(*value)) + 1 : 0);
  QPalette colours = palette();
  if (!value)
    for (const auto group : {QPalette::Active, QPalette::Inactive})
      colours.setColor(group, QPalette::ButtonText, grey);
  box.setPalette(colours);
}

void ScenarioForm::refresh() {
  later_.stop();
  if (!draft_) return;
  const QString wrong =
      checked_.ok || checked_.line == 0 ? "" : draft_->key_at(checked_.line, checked_.column);
  const QString chosen = gradients();
  const auto known = [&](const char* key) { return draft_->value(key).value_or(usual_.value(key)); };
  for (const Row& row : rows_) {
    const QString key = field_key(*row.field, chosen);
    if (row.choice)
      refresh_choice(row, key);
    else
      row.number->show_value(draft_->value(key).value_or(""), usual_.value(row.field->key));
    // What makes no difference as the rest stands cannot be set, but can be seen and taken away.
    bool used = true;
    if (row.field->key == "servers") used = has_servers(chosen);
    if (row.field->key == "strategy.all_reduce") used = chosen.isEmpty() || !has_servers(chosen);
    if (row.field->key == "strategy.virtual_stages")
      used = known("strategy.schedule") == "interleaved" || known("strategy.schedule") == "breadth-first";
    if (row.field->key == "training.sequence_length")
      used = usual_.isEmpty() || usual_.contains("training.sequence_length");
    used = used || draft_->value(key).has_value();
    row.label->setEnabled(used);
    (row.choice ? static_cast<QWidget*>(row.choice) : row.number)->setEnabled(used);
    QPalette colours = palette();
    if (key == wrong) colours.setColor(QPalette::WindowText, critical_colour(is_dark(palette())));
    row.label->setPalette(colours);
    row.label->setToolTip(key == wrong ? checked_.message : row.field->tip);
    row.label->setText(key == wrong ? "\u25cf " + row.field->label : row.field->label);
  }
}

void ScenarioForm::changeEvent(QEvent* event) {
  QScrollArea::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && draft_) later_.start();
}

bool ScenarioForm::eventFilter(QObject* watched, QEvent* event) {
  // The wheel scrolls the form and changes no choice in passing.
  if (event->type() == QEvent::Wheel && qobject_cast<QComboBox*>(watched)) {
    event->ignore();
    return true;
  }
  return QScrollArea::eventFilter(watched, event);
}

}  // namespace rehearse::gui
