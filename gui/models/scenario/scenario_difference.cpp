#include "gui/models/scenario/scenario_difference.hpp"

#include <QHash>
#include <algorithm>
#include <tuple>
#include <vector>

#include "gui/models/scenario/scenario_fields.hpp"
#include "gui/models/scenario/toml_outline.hpp"
#include "models/text/toml_value.hpp"

namespace rehearse::gui {
namespace {

constexpr qsizetype kMostNamed = 2;        // differences in a name
constexpr qsizetype kMostCharacters = 24;  // per value
constexpr const char* kDefault = "default";

struct Value {
  QString shown;    // e.g. "ring", "32", "on"
  QString meaning;  // equal for equal values
};

Value value_of(const QString& written) {
  try {
    const TomlValue value = parse_toml_value(written.toStdString(), {});
    const QString meaning = QString::fromStdString(describe(value));
    if (const auto* text = value.get<std::string>()) return {QString::fromStdString(*text), meaning};
    if (const auto* flag = value.get<bool>()) return {*flag ? "on" : "off", meaning};
    if (const auto* number = value.get<std::int64_t>())  // 8 and 8.0 are equal
      return {QString::number(*number), QString::number(static_cast<double>(*number), 'g', 17)};
    if (const auto* number = value.get<double>()) return {written, QString::number(*number, 'g', 17)};
  } catch (const InputError&) {  // use the raw text
  }
  const QString line = written.simplified();
  return {line, line};
}

// Maps each key path to its value; an inline table is represented by its keys.
QHash<QString, Value> values_of(const QString& text) {
  QHash<QString, Value> values;
  for (const TomlKey& key : toml_outline(text).keys)
    if (const QString written = text.mid(key.value_begin, key.value_end - key.value_begin);
        !written.startsWith('{'))
      values[key.path] = value_of(written);
  return values;
}

// Lowercases the first letter ("Micro-batch" becomes "micro-batch") unless another letter is upper case
// ("ZeRO stage", "NICs").
QString within_a_sentence(const QString& label) {
  const QString rest = label.mid(1);
  return rest == rest.toLower() ? label.left(1).toLower() + rest : label;
}

struct Name {
  int place;  // in the form
  QString label, unit;
};

Name name_of(const QString& path) {
  const auto& fields = scenario_fields();
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].key == path || (fields[i].key == "servers" && path.endsWith("_server.servers")))
      return {static_cast<int>(i), within_a_sentence(fields[i].label), fields[i].unit};
  return {static_cast<int>(fields.size()), path.section('.', -1).replace('_', ' '), {}};
}

QString told(const Name& name, const QString& value) {
  return (name.label + ' ' + value + ' ' + (value == kDefault ? QString() : name.unit)).trimmed();
}

}  // namespace

QStringList differences(const QString& before, const QString& text) {
  const QHash<QString, Value> old_values = values_of(before), values = values_of(text);
  struct Difference {
    int place;
    QString path, told;
  };
  std::vector<Difference> found;
  const auto add = [&](const QString& path, QString value) {
    if (value.size() > kMostCharacters) value = value.left(kMostCharacters) + "...";
    const Name name = name_of(path);
    found.push_back({name.place, path, told(name, value)});
  };
  for (auto value = values.begin(); value != values.end(); ++value) {
    const auto was = old_values.find(value.key());
    if (was == old_values.end() || was->meaning != value->meaning) add(value.key(), value->shown);
  }
  for (auto was = old_values.begin(); was != old_values.end(); ++was)
    if (!values.contains(was.key())) add(was.key(), kDefault);
  std::sort(found.begin(), found.end(), [](const Difference& a, const Difference& b) {
    return std::tie(a.place, a.path) < std::tie(b.place, b.path);
  });
  QStringList all;
  for (const Difference& one : found) all << one.told;
  return all;
}

QString settings_name(const QStringList& settings) {
  QStringList names;
  for (const QString& setting : settings) {
    const QString key = setting.section('=', 0, 0), written = setting.section('=', 1);
    const Name name = key == "cluster.slow" ? Name{0, "slow parts", {}} : name_of(key);
    names << (written == "[]" ? "no " + name.label : told(name, value_of(written).shown));
  }
  return names.join(", ");
}

QStringList settings_of(const std::vector<std::string>& sets) {
  QStringList settings;
  for (const std::string& set : sets) settings << QString::fromStdString(set);
  return settings;
}

QString named_by_difference(const ScenarioDraft& draft) {
  const QString& name = draft.origin().name;
  const QStringList all = differences(draft.origin().text, draft.text());
  if (all.isEmpty()) return name;
  if (all.size() <= kMostNamed) return name + ", " + all.join(", ");
  QStringList since;  // since the last run
  if (!draft.last_run().isEmpty())
    for (const QString& one : differences(draft.last_run(), draft.text()))
      if (all.contains(one)) since << one;
  return since.isEmpty() || since.size() > kMostNamed
             ? QString("%1, %2 changes").arg(name).arg(all.size())
             : QString("%1, %2 and %3 more").arg(name, since.join(", ")).arg(all.size() - since.size());
}

}  // namespace rehearse::gui
