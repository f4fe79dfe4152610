#include "gui/views/scenario/scenario_form.hpp"

#include <QApplication>
#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QPointer>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/models/scenario/further_fields.hpp"
#include "gui/views/scenario/form_row.hpp"
#include "gui/views/scenario/setting_finder.hpp"

namespace rehearse::gui {
namespace {

using FieldKind = ScenarioField::Kind;

constexpr int kRefreshMs = 60;  // milliseconds after the last key typed in the text
// Fields shown for uncommon keys of a text; all others are found by search.
constexpr std::size_t kMostFurther = 60;
constexpr qsizetype kMostListed = 200;  // keys listed by a search

// Returns the keys that express the same setting as `key` differently; setting `key` removes them.
QStringList said_otherwise(const QString& key) {
  static const QMap<QString, QStringList> kOthers = {
      {"model.preset", {"model.file", "model.huggingface"}},
      {"cluster.preset", {"cluster.file"}},
      {"training.tokens", {"training.samples", "training.epochs", "training.dataset_samples"}},
      {"training.samples", {"training.tokens", "training.epochs", "training.dataset_samples"}},
      {"training.epochs", {"training.tokens", "training.samples"}}};
  return kOthers.value(key);
}

bool is_common(const QString& key) {
  const auto& fields = scenario_fields();
  return std::any_of(fields.begin(), fields.end(), [&](const ScenarioField& f) { return f.key == key; });
}

}  // namespace

ScenarioForm::ScenarioForm(QWidget* parent)
    : QWidget(parent), finder_(new SettingFinder(this)), scroll_(new QScrollArea(this)), body_(new QWidget) {
  setAccessibleName("Form of the scenario");
  scroll_->setWidgetResizable(true);
  scroll_->setFrameShape(QFrame::NoFrame);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll_->setFocusPolicy(Qt::NoFocus);
  scroll_->setWidget(body_);
  setFocusProxy(&finder_->line());
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(finder_);
  layout->addWidget(scroll_, 1);
  later_.setSingleShot(true);
  later_.setInterval(kRefreshMs);
  connect(&later_, &QTimer::timeout, this, &ScenarioForm::refresh);
  connect(finder_, &SettingFinder::typed, this, &ScenarioForm::filter);
  connect(finder_, &SettingFinder::chosen, this, &ScenarioForm::choose);
  connect(finder_, &SettingFinder::accepted, this, [this] {
    if (const FormRow* row = named_row()) return go_to(row->editor());
    for (const auto& row : rows_)
      if (is_found(*row) && row->editor()->isEnabled()) return go_to(row->editor());
  });
  for (const ScenarioField& field : scenario_fields()) add_row(field);
  lay_out();
  reading_keys_.ask([](const std::atomic<bool>&) { return scenario_keys(); },
                    [this](const auto& keys) {
                      keys_ = keys;
                      for (const ScenarioKey& key : *keys_)
                        if (key.value) findable_.push_back(further_field(first_path(key.path, *keys_), &key));
                      refresh();
                    });
}

ScenarioForm::~ScenarioForm() = default;

// ----- rows

FormRow& ScenarioForm::add_row(const ScenarioField& field) {
  FormRow& row = *rows_.emplace_back(std::make_unique<FormRow>(field, *body_));
  row.editor()->installEventFilter(this);
  connect(&row, &FormRow::edited, this, [this, field](const QString& value) { set_key(field, value); });
  return row;
}

FormRow* ScenarioForm::row(const QString& key) const {
  for (const auto& row : rows_)
    if (row->field().key == key) return row.get();
  return nullptr;
}

QWidget* ScenarioForm::field(const QString& key) const {
  const FormRow* found = row(key);
  return found ? found->editor() : nullptr;
}

void ScenarioForm::lay_out() {
  for (QLabel* title : std::exchange(titles_, {})) delete title;
  delete body_->layout();
  auto* grid = new QGridLayout(body_);
  grid->setEnabled(false);
  grid->setContentsMargins(10, 2, 6, 8);
  grid->setHorizontalSpacing(6);
  grid->setVerticalSpacing(4);
  grid->setColumnStretch(1, 1);
  std::vector<QString> groups;
  for (const auto& row : rows_)
    if (std::find(groups.begin(), groups.end(), row->field().group) == groups.end())
      groups.push_back(row->field().group);
  int line = 0;
  QWidget* before = &finder_->further();
  for (const QString& group : groups) {
    auto* title = new QLabel(group, body_);
    QFont font = title->font();
    font.setBold(true);
    title->setFont(font);
    title->setContentsMargins(0, line > 0 ? 6 : 0, 0, 0);
    title->show();
    titles_.push_back(title);
    grid->addWidget(title, line++, 0, 1, 3);
    for (const auto& row : rows_) {
      if (row->field().group != group) continue;
      grid->addWidget(row->label(), line, 0);
      grid->addWidget(row->editor(), line, 1);
      grid->addWidget(row->reset(), line++, 2);
      QWidget::setTabOrder(before, row->editor());
      before = row->editor();
    }
  }
  grid->setRowStretch(line, 1);
  grid->setEnabled(true);
}

// ----- the draft

void ScenarioForm::set_draft(ScenarioDraft& draft) {
  disconnect(connection_);
  draft_ = &draft;
  usual_.clear();
  chosen_.clear();
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
  // Committing a row can add or remove rows, so iterate over guarded pointers.
  std::vector<QPointer<FormRow>> rows;
  for (const auto& row : rows_) rows.emplace_back(row.get());
  for (const QPointer<FormRow>& row : rows)
    if (row) row->commit();
}

void ScenarioForm::set_key(const ScenarioField& field, const QString& value) {
  if (!draft_) return;
  const QString key = field_key(field, known("strategy.gradients"));
  if (!is_common(field.key)) chosen_ << field.key;
  if (value.isEmpty())
    draft_->remove(key);
  else if (field.kind == FieldKind::choice || field.kind == FieldKind::text)
    draft_->set_string(key, value, said_otherwise(key));
  else
    draft_->set_number(key, value, said_otherwise(key));
  refresh();
}

QString ScenarioForm::known(const QString& key) const {
  return draft_->value(key).value_or(usual_.value(key));
}

void ScenarioForm::follow_text() {
  QSet<QString> wanted;
  const QString gradients = known("strategy.gradients");
  if (keys_) {
    QSet<QString> common;
    for (const ScenarioField& field : scenario_fields()) common << field_key(field, gradients);
    for (const TomlKey& key : draft_->outline().keys)
      if (static_cast<std::size_t>(wanted.size()) < kMostFurther && !common.contains(key.path) &&
          key.path.contains('.') && draft_->text().mid(key.value_begin, 1) != "{")
        wanted << key.path;
    wanted += chosen_;
  }
  const std::size_t before = rows_.size();
  std::erase_if(rows_, [&](const auto& row) {
    const QString& key = row->field().key;
    return !is_common(key) && !wanted.contains(key);
  });
  bool changed = rows_.size() != before;
  QStringList sorted(wanted.begin(), wanted.end());
  sorted.sort();
  for (const QString& key : sorted) {
    if (row(key)) continue;
    add_row(further_field(key, known_key(key, *keys_)));
    changed = true;
  }
  if (changed) lay_out();
}

QString ScenarioForm::why_unused(const ScenarioField& field, const QString& gradients) const {
  const QString& key = field.key;
  const bool servers = has_servers(gradients);
  if ((key == "servers" || key == "cluster.server_nodes") && !servers)
    return "Only when gradients go through parameter servers.";
  if ((key == "strategy.all_reduce" || key == "strategy.compression") && servers)
    return "Not when gradients go through parameter servers.";
  const QString schedule = known("strategy.schedule"), fabric = known("cluster.kind");
  if (key == "strategy.virtual_stages" && schedule != "interleaved" && schedule != "breadth-first")
    return "Only with the interleaved or breadth-first schedule.";
  if (key == "cluster.oversubscription" && !fabric.isEmpty() && fabric != "leaf-spine" && fabric != "rail" &&
      fabric != "fat-tree")
    return "Only with a leaf-spine, rail or fat-tree fabric.";
  const bool of_tokens =
      key == "training.sequence_length" || key == "training.tokens" || key == "training.attention";
  if (of_tokens && !usual_.isEmpty() && !usual_.contains("training.sequence_length"))
    return "Only for models that are trained on tokens.";
  if (key == "training.dataset_samples" && !draft_->value("training.epochs"))
    return "Only together with epochs.";
  return {};
}

void ScenarioForm::refresh_row(FormRow& row, const QString& gradients, const QString& wrong) {
  const ScenarioField& field = row.field();
  const QString key = field_key(field, gradients);
  FormRow::State state;
  state.value = field.kind == FieldKind::toml ? draft_->written(key) : draft_->value(key);
  state.usual = usual_.value(field.key);
  if (key == "model.preset" || key == "cluster.preset")
    for (const QString& other : said_otherwise(key))
      if (const auto file = draft_->value(other)) state.instead = "file " + *file;
  state.why_unused = why_unused(field, gradients);
  if (key == wrong) state.error = checked_.message;
  row.show(state);
}

void ScenarioForm::refresh() {
  later_.stop();
  if (!draft_) return;
  follow_text();
  const QString wrong =
      checked_.ok || checked_.line == 0 ? "" : draft_->key_at(checked_.line, checked_.column);
  const QString gradients = known("strategy.gradients");
  for (const auto& row : rows_) refresh_row(*row, gradients, wrong);
  filter();
}

// ----- search

void ScenarioForm::find() {
  finder_->line().setFocus(Qt::ShortcutFocusReason);
  finder_->line().selectAll();
}

ScenarioField ScenarioForm::searched_field(const FormRow& row) const {
  ScenarioField field = row.field();
  if (draft_) field.key = field_key(field, known("strategy.gradients"));
  return field;
}

bool ScenarioForm::is_found(const FormRow& row) const {
  return is_meant(searched_field(row), finder_->words());
}

FormRow* ScenarioForm::named_row() const {
  for (const auto& row : rows_)
    if (row->editor()->isEnabled() && is_named(searched_field(*row).key, finder_->words())) return row.get();
  return nullptr;
}

void ScenarioForm::filter() {
  const QString words = finder_->words();
  QSet<QString> groups;
  body_->layout()->setEnabled(false);  // otherwise each change of visibility lays out the whole form
  for (const auto& row : rows_) {
    const bool found = is_found(*row);
    row->set_visible(found);
    if (found) groups << row->field().group;
  }
  for (QLabel* title : titles_) title->setVisible(groups.contains(title->text()));
  body_->layout()->setEnabled(true);
  const QString servers =
      draft_ ? field_key(row("servers")->field(), known("strategy.gradients")) : QString();
  QStringList paths;
  if (!words.isEmpty())
    for (const ScenarioField& field : findable_)
      if (!row(field.key) && field.key != servers && paths.size() < kMostListed && is_meant(field, words))
        paths << field.key;
  finder_->list(paths, !named_row());
}

void ScenarioForm::choose(const QString& path) {
  chosen_ << path;
  finder_->clear();
  refresh();
  go_to(field(path));
}

void ScenarioForm::go_to(QWidget* editor) {
  if (!editor) return;
  finder_->clear();
  body_->layout()->activate();
  editor->setFocus(Qt::OtherFocusReason);
  scroll_->ensureWidgetVisible(editor);
}

// ----- appearance

void ScenarioForm::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && draft_) later_.start();
}

bool ScenarioForm::eventFilter(QObject* watched, QEvent* event) {
  // Let the wheel scroll the form without changing a combo box on the way.
  if (event->type() == QEvent::Wheel && qobject_cast<QComboBox*>(watched)) {
    event->ignore();
    return true;
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace rehearse::gui
