#include "gui/models/scenario/scenario_draft.hpp"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QRegularExpression>
#include <QSaveFile>
#include <QTextBlock>
#include <QTextCursor>

#include "models/text/document.hpp"
#include "models/text/toml_text.hpp"

namespace rehearse::gui {
namespace {

void apply(QTextDocument& document, const TextEdit& edit) {
  QTextCursor cursor(&document);
  cursor.beginEditBlock();
  cursor.setPosition(edit.begin);
  cursor.setPosition(edit.end, QTextCursor::KeepAnchor);
  cursor.insertText(edit.text);
  cursor.endEditBlock();
}

}  // namespace

QString new_scenario_text() {
  return R"(# One training step: the model, the cluster and the strategy. Run (Ctrl+R) predicts it.
[model]
preset = "resnet50"

[training]
global_batch = 2048    # samples per optimizer step, over all devices
micro_batch = 64       # samples that a device processes at once

[cluster]
preset = "dgx-a100"
nodes = 4

[strategy]
gradients = "all-reduce"
all_reduce = "ring"
)";
}

ScenarioDraft::ScenarioDraft(const QString& text, const QString& name, QObject* parent)
    : QObject(parent), name_(name), origin_{name, text} {
  document_.setPlainText(text);
  document_.setModified(false);
  // Connected before all other slots, so that they see the current text.
  connect(&document_, &QTextDocument::contentsChanged, this, [this] {
    text_.reset();
    outline_.reset();
  });
  connect(&document_, &QTextDocument::contentsChanged, this, &ScenarioDraft::text_changed);
  connect(&document_, &QTextDocument::modificationChanged, this, &ScenarioDraft::modified_changed);
}

const QString& ScenarioDraft::text() const {
  if (!text_) text_ = document_.toPlainText();
  return *text_;
}

const TomlOutline& ScenarioDraft::outline() const {
  if (!outline_) outline_ = toml_outline(text());
  return *outline_;
}

QString ScenarioDraft::folder() const {
  return path_.isEmpty() ? folder_ : QFileInfo(path_).absolutePath();
}

void ScenarioDraft::set_name(const QString& name) {
  if (name == name_) return;
  name_ = name;
  emit name_changed();
}

void ScenarioDraft::set_run(int id, const QString& text) {
  run_ = id;
  run_text_ = text;
}

void ScenarioDraft::take_run() {
  if (run_ == 0 || is_as_run()) return;
  QTextCursor cursor(&document_);
  cursor.beginEditBlock();
  cursor.select(QTextCursor::Document);
  cursor.insertText(run_text_);
  cursor.endEditBlock();
  if (path_.isEmpty()) document_.setModified(false);
}

bool ScenarioDraft::only_repeats_run() const {
  return made_for_run_ && path_.isEmpty() && !is_modified() && !document_.isUndoAvailable() &&
         !document_.isRedoAvailable();
}

QString ScenarioDraft::load(const QString& path) {
  try {
    const std::string bytes = read_text_file(path.toStdString(), "scenario file");
    path_ = path;
    document_.setPlainText(QString::fromUtf8(bytes.data(), static_cast<qsizetype>(bytes.size())));
    document_.setModified(false);
  } catch (const InputError& error) {
    return QString::fromUtf8(error.what());
  }
  set_name(QFileInfo(path).completeBaseName());
  origin_ = {name_, text()};
  return {};
}

QString ScenarioDraft::save(const QString& path) {
  QSaveFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(text().toUtf8()) < 0 || !file.commit())
    return QString("%1: cannot be written: %2").arg(path, file.errorString());
  const bool another = path != path_;
  path_ = path;
  document_.setModified(false);
  set_name(QFileInfo(path).completeBaseName());
  if (another) origin_ = {name_, text()};
  return {};
}

void ScenarioDraft::restore(const QString& path, const QString& folder, const QString& text) {
  ScenarioDraft file({}, {});
  const bool has_file = !path.isEmpty() && file.load(path).isEmpty();
  path_ = path;
  folder_ = folder;
  document_.setPlainText(text);
  origin_ = has_file ? file.origin() : Origin{name_, text};
  keep();
  document_.setModified(true);
}

std::optional<QString> ScenarioDraft::written(const QString& key) const {
  const TomlKey* found = outline().key(key);
  if (!found) return std::nullopt;
  return text().mid(found->value_begin, found->value_end - found->value_begin);
}

std::optional<QString> ScenarioDraft::value(const QString& key) const {
  const std::optional<QString> stands = written(key);
  if (!stands) return std::nullopt;
  try {
    const TomlValue value = parse_toml_value(stands->toStdString(), {});
    if (const auto* string = value.get<std::string>()) return QString::fromStdString(*string);
    // Normalizes e.g. 1_000 to 1000.
    if (const auto* number = value.get<std::int64_t>()) return QString::number(*number);
  } catch (const InputError&) {
    // Falls through to the raw text; the check reports what is wrong with it.
  }
  return stands;
}

void ScenarioDraft::write(const QString& key, const QString& value, const QStringList& instead_of) {
  QTextCursor step(&document_);
  step.beginEditBlock();
  for (const QString& other : instead_of)
    if (const auto edit = edit_to_remove(document_.toPlainText(), other)) apply(document_, *edit);
  apply(document_, edit_to_set(document_.toPlainText(), key, value));
  step.endEditBlock();
}

void ScenarioDraft::set_string(const QString& key, const QString& value, const QStringList& instead_of) {
  write(key, QString::fromStdString(toml_string(value.toStdString())), instead_of);
}

void ScenarioDraft::set_number(const QString& key, const QString& value, const QStringList& instead_of) {
  write(key, value, instead_of);
}

void ScenarioDraft::remove(const QString& key) {
  if (const auto edit = edit_to_remove(text(), key)) apply(document_, *edit);
}

void ScenarioDraft::assign(const QStringList& settings) {
  QTextCursor step(&document_);
  step.beginEditBlock();
  for (const QString& setting : settings) {
    const QString key = setting.section('=', 0, 0).trimmed(), given = setting.section('=', 1).trimmed();
    if (given.isEmpty()) {
      if (const auto edit = edit_to_remove(document_.toPlainText(), key)) apply(document_, *edit);
      continue;
    }
    QString value = given;
    try {
      const TomlValue read = parse_toml_value(given.toStdString(), {});
      if (const auto* text = read.get<std::string>()) value = QString::fromStdString(toml_string(*text));
    } catch (const InputError&) {
      // The check reports what is wrong with it.
    }
    apply(document_, edit_to_set(document_.toPlainText(), key, value));
  }
  step.endEditBlock();
}

int ScenarioDraft::position(int line, int column) const {
  const QTextBlock block = document_.findBlockByNumber(line - 1);
  if (line < 1 || !block.isValid()) return -1;
  const QString text = block.text();
  int place = 0;
  for (int character = 1; character < column && place < text.size(); ++character)
    place += text[place].isHighSurrogate() && place + 1 < text.size() ? 2 : 1;
  return block.position() + place;
}

QString ScenarioDraft::key_at(int line, int column) const {
  const int place = position(line, column);
  if (place < 0) return {};
  const TomlKey* nearest = nullptr;
  for (const TomlKey& key : outline().keys)
    if (key.key_begin <= place && place <= key.value_end) nearest = &key;  // the innermost comes last
  return nearest ? nearest->path : QString();
}

namespace {

// Returns what a message proposes instead of `found`.
QStringList proposed_in(const QString& message, const QString& found) {
  static const QRegularExpression kAsked(R"(did you mean ["\[]([\w.-]+)["\]]\?)"),
      kSuchAs(R"(; allowed: .*, such as ([\d.]+)(?: or ([\d.]+))?$)"),
      kAllowed(R"(; allowed: ("[\w.-]+"(?:, "[\w.-]+")*)$)");
  if (const auto asked = kAsked.match(message); asked.hasMatch()) return {asked.captured(1)};
  if (const auto such = kSuchAs.match(message); such.hasMatch()) {
    QStringList numbers = {such.captured(1), such.captured(2)};
    numbers.removeAll(QString());
    return numbers;
  }
  if (const auto allowed = kAllowed.match(message); allowed.hasMatch()) {
    std::vector<std::string> names;
    for (QString name : allowed.captured(1).split(", ")) names.push_back(name.remove('"').toStdString());
    if (const std::string nearest = nearest_name(found.toStdString(), names); !nearest.empty())
      return {QString::fromStdString(nearest)};
  }
  return {};
}

}  // namespace

std::vector<ScenarioDraft::Suggestion> ScenarioDraft::suggestions(int line, int column,
                                                                  const QString& message) const {
  int begin = position(line, column);
  if (begin < 0) return {};
  const QString& all = text();
  const auto is_name = [&](int i) {
    return i < all.size() && (all[i].isLetterOrNumber() || all[i] == '_' || all[i] == '-' || all[i] == '.');
  };
  while (begin < all.size() && (all[begin] == '[' || all[begin] == '"' || all[begin] == '\'')) ++begin;
  int end = begin;
  while (is_name(end)) ++end;
  if (end == begin) return {};
  std::vector<Suggestion> suggestions;
  for (const QString& text : proposed_in(message, all.mid(begin, end - begin)))
    suggestions.push_back({text, {begin, end, text}});
  return suggestions;
}

void ScenarioDraft::change(const TextEdit& edit) {
  apply(document_, edit);
}

}  // namespace rehearse::gui
