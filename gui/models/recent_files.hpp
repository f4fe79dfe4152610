// The files that were opened last, as the settings keep them.
#pragma once

#include <QDateTime>
#include <QString>
#include <vector>

namespace rehearse::gui {

struct RecentFile {
  QString path;
  QString kind;    // "trace"
  QDateTime when;  // it was opened; invalid: not known
};

// The last one first.
std::vector<RecentFile> recent_files();
void remember_recent(const QString& path, const QDateTime& when);
// "14:05", "yesterday", "3 Mar 2026"
QString told_when(const QDateTime& when, const QDateTime& now);

}  // namespace rehearse::gui
