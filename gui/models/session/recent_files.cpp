#include "gui/models/session/recent_files.hpp"

#include <QFileInfo>
#include <QLocale>
#include <QSettings>
#include <QStringList>
#include <QVariantMap>
#include <algorithm>

#include "gui/models/tables/plan_file.hpp"

namespace rehearse::gui {

namespace {

constexpr int kMost = 12;

QString kind_of_file(const QString& path) {
  const QString ending = QFileInfo(path).suffix().toLower();
  if (ending == "toml") return "scenario";
  if (ending == "csv") return "table";
  if (ending == "rehearse") return "session";
  if (ending == "json" && is_plan_file(path.toStdString())) return "plans";
  return "trace";
}

}  // namespace

std::vector<RecentFile> recent_files() {
  const QSettings settings;
  const QVariantMap when = settings.value("recent_when").toMap();
  std::vector<RecentFile> files;
  for (const QString& path : settings.value("recent").toStringList())
    files.push_back({path, kind_of_file(path), when.value(path).toDateTime()});
  return files;
}

void remember_recent(const QString& path, const QDateTime& when) {
  QSettings settings;
  const QString whole = QFileInfo(path).absoluteFilePath();
  QStringList recent = settings.value("recent").toStringList();
  recent.removeAll(whole);
  recent.prepend(whole);
  recent = recent.mid(0, kMost);
  QVariantMap times = settings.value("recent_when").toMap(), kept;
  times[whole] = when;
  for (const QString& file : recent)
    if (times.contains(file)) kept[file] = times[file];
  settings.setValue("recent", recent);
  settings.setValue("recent_when", kept);
}

QString told_when(const QDateTime& when, const QDateTime& now) {
  if (!when.isValid()) return {};
  const qint64 days = when.date().daysTo(now.date());
  if (days == 0) return "today, " + when.toString("hh:mm");
  if (days == 1) return "yesterday";
  return QLocale::c().toString(when.date(), "d MMM yyyy");
}

}  // namespace rehearse::gui
