#include "gui/models/scenario/further_fields.hpp"

#include <QRegularExpression>
#include <algorithm>
#include <array>

namespace rehearse::gui {
namespace {

// Key suffixes that are units.
constexpr std::array<std::pair<const char*, const char*>, 9> kUnits = {{{"_gb_per_s", "GB/s"},
                                                                        {"_gbps", "Gb/s"},
                                                                        {"_gib", "GiB"},
                                                                        {"_mb", "MiB"},
                                                                        {"_kb", "KiB"},
                                                                        {"_us", "us"},
                                                                        {"_ms", "ms"},
                                                                        {"_w", "W"},
                                                                        {"_per_kwh", "a kWh"}}};

// Makes the label without the table's name: "cluster.slow[1].factor" becomes "Slow 2 factor". Moves a
// trailing unit into `unit`.
QString label_of(const QString& path, QString& unit) {
  QString name = path.section('.', 1);
  if (name.isEmpty()) name = path;
  for (const auto& [ending, shown] : kUnits)
    if (name.endsWith(ending)) {
      unit = shown;
      name.chop(QString(ending).size());
      break;
    }
  static const QRegularExpression kNumber("\\[(\\d+)\\]");
  for (auto match = kNumber.match(name); match.hasMatch(); match = kNumber.match(name))
    name.replace(match.capturedStart(), match.capturedLength(),
                 ' ' + QString::number(match.captured(1).toInt() + 1));
  name.replace('_', ' ').replace('.', ' ');
  return name.left(1).toUpper() + name.mid(1);
}

QString as_words(QString text) {
  return text.replace('_', ' ').replace('-', ' ').replace('.', ' ').toLower();
}

}  // namespace

ScenarioField further_field(const QString& path, const ScenarioKey* known) {
  using Kind = ScenarioField::Kind;
  ScenarioField field;
  const QString section = path.section('.', 0, 0);
  field.group = section.left(1).toUpper() + section.mid(1);
  field.key = path;
  field.label = label_of(path, field.unit);
  field.tip = "The key " + path;
  field.kind = Kind::toml;
  if (!known) return field;
  for (QString value : known->values) {
    if (value.startsWith('"')) value = value.mid(1, value.size() - 2);
    field.choices << value;
  }
  switch (known->kind) {
    case ScenarioKey::Kind::number:
      field.kind = Kind::number;
      break;
    case ScenarioKey::Kind::decimal:
      field.kind = Kind::decimal;
      break;
    case ScenarioKey::Kind::flag:
      field.kind = Kind::flag;
      break;
    case ScenarioKey::Kind::choice:
      field.kind = Kind::choice;
      break;
    case ScenarioKey::Kind::text:
      field.kind = field.choices.isEmpty() ? Kind::text : Kind::choice;
      break;
    case ScenarioKey::Kind::list:
      break;
  }
  return field;
}

const ScenarioKey* known_key(const QString& path, const std::vector<ScenarioKey>& keys) {
  static const QRegularExpression kNumber("\\[\\d+\\]");
  const QString plain = QString(path).remove(kNumber);
  const auto found =
      std::lower_bound(keys.begin(), keys.end(), plain,
                       [](const ScenarioKey& key, const QString& wanted) { return key.path < wanted; });
  return found != keys.end() && found->path == plain && found->value ? &*found : nullptr;
}

QString first_path(const QString& path, const std::vector<ScenarioKey>& keys) {
  QString result, plain;
  const QStringList parts = path.split('.');
  for (qsizetype i = 0; i < parts.size(); ++i) {
    const QString before = i > 0 ? "." : "";
    result += before + parts[i];
    plain += before + parts[i];
    const bool many = std::any_of(keys.begin(), keys.end(),
                                  [&](const ScenarioKey& key) { return key.many && key.path == plain; });
    if (many && i + 1 < parts.size()) result += "[0]";
  }
  return result;
}

bool is_meant(const ScenarioField& field, const QString& words) {
  const QString all = as_words(field.label + ' ' + field.key + ' ' + field.tip);
  const QStringList wanted = as_words(words).split(' ', Qt::SkipEmptyParts);
  return std::all_of(wanted.begin(), wanted.end(), [&](const QString& word) { return all.contains(word); });
}

bool is_named(const QString& key, const QString& words) {
  const QString wanted = as_words(words).simplified();
  return !wanted.isEmpty() && (' ' + as_words(key)).endsWith(' ' + wanted);
}

}  // namespace rehearse::gui
