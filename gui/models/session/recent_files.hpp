// Stores the recently opened files in the settings.
#pragma once

#include <QDateTime>
#include <QString>
#include <vector>

namespace rehearse::gui {

struct RecentFile {
  QString path;
  QString kind;    // e.g. "trace"
  QDateTime when;  // time of opening; invalid: not known
};

// Returns the files, the most recent first.
std::vector<RecentFile> recent_files();
void remember_recent(const QString& path, const QDateTime& when);
// Returns e.g. "today, 14:05", "yesterday", "3 Mar 2026".
QString told_when(const QDateTime& when, const QDateTime& now);

}  // namespace rehearse::gui
