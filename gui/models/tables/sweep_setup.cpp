#include "gui/models/tables/sweep_setup.hpp"

#include <algorithm>
#include <array>

#include "gui/models/scenario/scenario_fields.hpp"
#include "models/text/error.hpp"
#include "models/text/read_text.hpp"

namespace rehearse::gui {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // enough for a sweep with millions of points

constexpr std::array kOften = {"cluster.nodes",           "training.micro_batch", "training.global_batch",
                               "strategy.data",           "strategy.tensor",      "strategy.pipeline",
                               "strategy.virtual_stages", "strategy.bucket_mb",   "strategy.all_reduce",
                               "strategy.schedule",       "strategy.gradients",   "training.precision",
                               "training.recompute",      "cluster.nic_gbps"};

bool is_power_of_two(qint64 number) {
  return number > 0 && (number & (number - 1)) == 0;
}

// Proposes the powers of two from 1 to `to`.
QString doubling(qint64 to) {
  return QString("1..%1*2").arg(std::max<qint64>(2, to));
}

QString about(qint64 number) {
  QStringList values;
  for (const qint64 part : {4, 2})
    if (number % part == 0) values << QString::number(number / part);
  values << QString::number(number) << QString::number(2 * number);
  return values.join(',');
}

QStringList choices_of(const QString& key, const std::vector<ScenarioKey>& keys) {
  for (const ScenarioField& field : scenario_fields())
    if (field.key == key && !field.choices.isEmpty()) return field.choices;
  QStringList choices;
  for (const ScenarioKey& known : keys)
    if (known.path == key)
      for (QString value : known.values) choices << value.remove('"');
  return choices;
}

}  // namespace

QStringList sweep_keys(const std::vector<ScenarioKey>& keys) {
  QStringList all;
  for (const char* key : kOften) all << key;
  for (const ScenarioKey& key : keys)
    if (key.value && !key.many && !all.contains(key.path)) all << key.path;
  return all;
}

QString proposed_values(const QString& key, const QMap<QString, QString>& now,
                        const std::vector<ScenarioKey>& keys) {
  if (key == "strategy.bucket_mb") return "5,10,25,50,100";
  if (key == "cluster.nic_gbps") return "25,50,100,200,400";
  if (const QStringList choices = choices_of(key, keys); !choices.isEmpty()) return choices.join(',');
  bool whole = false;
  const qint64 number = now.value(key).toLongLong(&whole);
  if (!whole || number < 1) return {};
  if (key == "training.global_batch") return QString("%1,%2,%3").arg(number).arg(2 * number).arg(4 * number);
  if (!is_power_of_two(number)) return about(number);
  // Number of nodes or a degree: do not exceed the current value, for which the batch is large enough, unless
  // it is 1.
  return doubling(number == 1 ? 8 : key == "training.micro_batch" ? 2 * number : number);
}

ReadSweep read_growing_sweep(const std::string& path) {
  std::string text = read_text_file(path, "table", kMostBytes);
  text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
  ReadSweep read{sweep_of(parse_csv(text, path)), {}};
  if (read.sweep.points.empty()) throw InputError({path}, "has no points yet");
  read.rows = rows_of(read.sweep);
  return read;
}

}  // namespace rehearse::gui
