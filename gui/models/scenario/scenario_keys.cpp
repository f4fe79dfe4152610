#include "gui/models/scenario/scenario_keys.hpp"

#include <QRegularExpression>
#include <algorithm>
#include <map>
#include <mutex>

#include "gui/models/scenario/scenario_fields.hpp"
#include "gui/models/scenario/toml_outline.hpp"
#include "models/text/asked_keys.hpp"
#include "models/text/document.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "topologies/device.hpp"

namespace rehearse::gui {

namespace {

const QStringList kSections = {"model", "training",  "cluster", "strategy", "simulation",
                               "run",   "framework", "cost",    "data",     "checkpoint"};

// Returns "cluster.slow" for "cluster.slow[0]".
QString without_numbers(QString path) {
  static const QRegularExpression kNumber("\\[[0-9]+\\]");
  return path.remove(kNumber);
}

QStringList quoted(const std::vector<std::string>& names) {
  QStringList result;
  for (const std::string& name : names) result << '"' + QString::fromStdString(name) + '"';
  return result;
}

// Returns the choices of keys that the reader accepts as any text but that name installed files.
QStringList names_for(const QString& path) {
  if (path == "model.preset") return quoted(preset_names("models"));
  if (path == "cluster.preset") return quoted(preset_names("topologies"));
  if (path == "strategy.preset") return quoted(preset_names("simulator/strategies"));
  if (path == "training.framework") return quoted(preset_names("simulator/frameworks"));
  if (path == "data.dataset") return quoted(preset_names("simulator/input/datasets"));
  if (path == "data.loader.preset") return quoted(preset_names("simulator/input/loaders"));
  if (path == "data.preparation.preset") return quoted(preset_names("simulator/input/preparations"));
  if (path == "checkpoint.preset") return quoted(preset_names("simulator/input/checkpoints"));
  if (path == "data.storage.preset" || path == "checkpoint.storage.preset")
    return quoted(preset_names("simulator/input/storages"));
  if (path.endsWith(".device.preset") || path.endsWith(".node.device") || path == "cluster.group.device")
    return quoted(device_names());
  return {};
}

// Returns the contents of the file as sub-tables of `table`.
std::string nested(const std::string& path, const QString& table) {
  static const QRegularExpression kHeader("^(\\[\\[?)\\s*", QRegularExpression::MultilineOption);
  QString text = QString::fromStdString(read_text_file(path, "preset"));
  text.replace(kHeader, "\\1" + table + '.');
  return ('[' + table + "]\n" + text).toStdString();
}

ScenarioKey::Kind kind_of(AskedKey::Kind asked) {
  switch (asked) {
    case AskedKey::Kind::integer:
      return ScenarioKey::Kind::number;
    case AskedKey::Kind::number:
      return ScenarioKey::Kind::decimal;
    case AskedKey::Kind::boolean:
      return ScenarioKey::Kind::flag;
    case AskedKey::Kind::choice:
      return ScenarioKey::Kind::choice;
    case AskedKey::Kind::list:
      return ScenarioKey::Kind::list;
    default:
      return ScenarioKey::Kind::text;
  }
}

class Collector {
public:
  void read_file(const std::string& path, const std::vector<std::string>& changes = {}) {
    listen([&] { read_scenario_file(path, changes); });
  }
  void read_text(const std::string& text) {
    listen([&] { read_scenario_text(text, "keys"); });
  }
  // Finds the keys of tables that no file contains and the reader therefore did not ask for: sets each to a
  // value with a source.
  void read_absent_tables(const std::string& path) {
    for (const ScenarioKey& key : keys()) {
      const auto next = keys_.upper_bound(key.path);
      if (key.value || (next != keys_.end() && next->first.startsWith(key.path + '.'))) continue;
      read_file(path, {key.path.toStdString() + "={value=1, basis=\"guess\", source=\"any\"}"});
    }
  }
  std::vector<ScenarioKey> keys() const {
    std::vector<ScenarioKey> result;
    for (const auto& [path, key] : keys_) {
      result.push_back(key);
      // The reader never asked for its type: accept any value as raw TOML.
      if (!key.value && !key.section)
        result.back().value = true, result.back().kind = ScenarioKey::Kind::list;
    }
    return result;
  }

private:
  template <class Read>
  void listen(const Read& read_it) {
    const AskedKeys asked;
    try {
      read_it();
    } catch (const std::exception&) {  // the keys asked for before the error still count
    }
    for (const AskedKey& one : asked.keys()) {
      const QString path = without_numbers(QString::fromStdString(one.path));
      if (!kSections.contains(path.section('.', 0, 0))) continue;  // a preset's own keys
      ScenarioKey& key = keys_[path];
      key.path = path;
      if (one.kind == AskedKey::Kind::expected) continue;
      const bool many = one.kind == AskedKey::Kind::sections;
      const bool table = many || one.kind == AskedKey::Kind::section;
      key.section = key.section || table;
      key.many = key.many || many;
      key.value = key.value || !table;
      if (!table) key.kind = kind_of(one.kind);
      if (one.kind == AskedKey::Kind::boolean) key.values = QStringList{"false", "true"};
      if (one.kind == AskedKey::Kind::choice) key.values = quoted(one.allowed);
      if (one.kind == AskedKey::Kind::text && key.values.isEmpty()) key.values = names_for(path);
    }
  }
  std::map<QString, ScenarioKey> keys_;
};

// The line that contains the cursor.
struct TomlLine {
  int begin = 0, end = 0;
  QString text;
};

TomlLine line_at(const QString& text, int cursor) {
  TomlLine line;
  line.begin = cursor > 0 ? static_cast<int>(text.lastIndexOf('\n', cursor - 1)) + 1 : 0;
  const auto end = text.indexOf('\n', cursor);
  line.end = static_cast<int>(end < 0 ? text.size() : end);
  line.text = text.mid(line.begin, line.end - line.begin);
  return line;
}

// Returns the column of a character outside strings and before `until`; -1: not found.
int outside_strings(const QString& line, QChar wanted, int until) {
  QChar quote;
  for (int i = 0; i < until && i < line.size(); ++i) {
    if (!quote.isNull()) {
      if (line[i] == '\\' && quote == '"')
        ++i;
      else if (line[i] == quote)
        quote = QChar();
    } else if (line[i] == wanted) {
      return i;
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    }
  }
  return -1;
}

bool in_word(QChar c) {
  return c.isLetterOrNumber() || c == '_' || c == '-' || c == '.';
}

// Returns the index of the last section whose header is before the cursor; -1: none.
int section_at(const TomlOutline& outline, int cursor) {
  int section = -1;
  for (std::size_t t = 0; t < outline.tables.size(); ++t)
    if (outline.tables[t].header_begin < cursor) section = static_cast<int>(t);
  return section;
}

QString path_of(const TomlOutline& outline, int section) {
  return section < 0 ? QString() : without_numbers(outline.tables[static_cast<std::size_t>(section)].path);
}

bool stands(const TomlOutline& outline, const QString& section) {
  return std::any_of(outline.tables.begin(), outline.tables.end(), [&](const TomlTable& table) {
    return table.path == section || table.path.startsWith(section + '.');
  });
}

std::optional<Completion> finished(Completion completion, const QString& text, int cursor) {
  completion.typed = text.mid(completion.begin, cursor - completion.begin);
  completion.choices.sort();
  completion.choices.removeDuplicates();
  if (completion.choices.isEmpty()) return std::nullopt;
  return completion;
}

// Completes [section] or [[section]] and closes the brackets.
std::optional<Completion> of_header(const QString& text, int cursor, const TomlLine& line,
                                    const std::vector<ScenarioKey>& keys) {
  const auto first = static_cast<int>(line.text.indexOf('['));
  const bool many = line.text.mid(first + 1, 1) == "[";
  Completion completion;
  completion.begin = line.begin + first + (many ? 2 : 1);
  if (cursor < completion.begin) return std::nullopt;
  completion.end = completion.begin;
  while (completion.end < line.end && (in_word(text[completion.end]) || text[completion.end] == ' '))
    ++completion.end;
  if (cursor > completion.end) return std::nullopt;
  for (const ScenarioKey& key : keys)
    if (key.section && key.many == many) completion.choices << key.path;
  if (completion.end == line.end) completion.behind = many ? "]]" : "]";
  return finished(completion, text, cursor);
}

std::optional<Completion> of_value(const QString& text, int cursor, const TomlLine& line, int equals,
                                   const QString& section, const std::vector<ScenarioKey>& keys) {
  const QString name = line.text.left(equals).trimmed();
  const QString path = section.isEmpty() ? name : section + '.' + name;
  const auto key =
      std::find_if(keys.begin(), keys.end(), [&](const ScenarioKey& k) { return k.path == path; });
  if (key == keys.end() || key->values.isEmpty()) return std::nullopt;
  Completion completion;
  completion.begin = line.begin + equals + 1;
  while (completion.begin < cursor && text[completion.begin] == ' ') ++completion.begin;
  const int comment = outside_strings(line.text, '#', static_cast<int>(line.text.size()));
  completion.end = comment < 0 ? line.end : line.begin + comment;
  while (completion.end > std::max(cursor, completion.begin) && text[completion.end - 1].isSpace())
    --completion.end;
  if (cursor > completion.end) return std::nullopt;
  completion.choices = key->values;
  return finished(completion, text, cursor);
}

std::optional<Completion> of_key(const QString& text, int cursor, const TomlLine& line,
                                 const TomlOutline& outline, int number,
                                 const std::vector<ScenarioKey>& keys) {
  const QString section = path_of(outline, number);
  Completion completion;
  completion.begin = completion.end = cursor;
  while (completion.begin > line.begin && in_word(text[completion.begin - 1])) --completion.begin;
  while (completion.end < line.end && in_word(text[completion.end])) ++completion.end;
  const bool first = text.mid(line.begin, completion.begin - line.begin).trimmed().isEmpty();
  if (!first) return std::nullopt;
  const QString word = text.mid(completion.begin, completion.end - completion.begin);
  for (const ScenarioKey& key : keys) {
    if (!key.value || section.isEmpty() || parent_of(key.path) != section) continue;
    const QString name = key.path.mid(section.size() + 1);
    const bool there = std::any_of(outline.keys.begin(), outline.keys.end(), [&](const TomlKey& k) {
      return k.table == number && without_numbers(k.path) == key.path;
    });
    if (!there || name == word) completion.choices << name;
  }
  const bool has_value = outside_strings(line.text, '=', static_cast<int>(line.text.size())) >= 0;
  if (!has_value) completion.behind = " = ";
  if (const auto found = finished(completion, text, cursor); found || !word.isEmpty()) return found;
  // No keys are left in this section: propose other sections.
  completion.behind.clear();
  for (const ScenarioKey& key : keys)
    if (key.section && !key.many && !key.path.contains('.') && !stands(outline, key.path))
      completion.choices << '[' + key.path + ']';
  return finished(completion, text, cursor);
}

}  // namespace

std::shared_ptr<const std::vector<ScenarioKey>> scenario_keys() {
  static std::mutex one_at_a_time;
  static std::shared_ptr<const std::vector<ScenarioKey>> known;
  const std::lock_guard lock(one_at_a_time);
  if (known) return known;
  Collector collector;
  const std::vector<ScenarioTemplate> templates = scenario_templates();
  for (const ScenarioTemplate& one : templates) collector.read_file(one.path.toStdString());
  // Covers what no scenario uses: other fabrics, files, and models and clusters without a preset.
  const std::string training = "[training]\nglobal_batch = 1\n",
                    model = "[model]\npreset = \"mlp\"\n" + training;
  if (!templates.empty()) {
    const std::string base = templates.back().path.toStdString();
    collector.read_file(base, {"cluster.slow=[{factor=0.5, link=\"nic\"}]"});
    collector.read_file(base, {"cluster.group=[{nodes=1, device=\"v100\"}]"});
    collector.read_file(base, {"checkpoint.every=100", "checkpoint.storage.preset=\"nas\""});
    for (const std::string& name : preset_names("topologies"))
      collector.read_file(base, {"cluster.preset=" + name});
  }
  for (const char* key : {"file", "huggingface"})
    collector.read_text(std::string("[model]\n") + key + " = \"a\"\n" + training);
  collector.read_text(model + "[cluster]\nfile = \"a\"\n");
  for (const std::string& name : preset_names("topologies"))
    collector.read_text(model + nested(preset_path("topologies", name), "cluster"));
  for (const std::string& name : preset_names("models"))
    collector.read_text(training + nested(preset_path("models", name), "model"));
  if (!templates.empty()) collector.read_absent_tables(templates.back().path.toStdString());
  known = std::make_shared<const std::vector<ScenarioKey>>(collector.keys());
  return known;
}

std::optional<Completion> completion_at(const QString& text, int cursor,
                                        const std::vector<ScenarioKey>& keys) {
  const TomlLine line = line_at(text, cursor);
  const int column = cursor - line.begin;
  if (outside_strings(line.text, '#', column) >= 0) return std::nullopt;  // in a comment
  if (line.text.trimmed().startsWith('[')) return of_header(text, cursor, line, keys);
  const TomlOutline outline = toml_outline(text);
  const int section = section_at(outline, line.begin);
  const int equals = outside_strings(line.text, '=', column);
  if (equals >= 0) return of_value(text, cursor, line, equals, path_of(outline, section), keys);
  return of_key(text, cursor, line, outline, section, keys);
}

}  // namespace rehearse::gui
