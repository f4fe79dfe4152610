// Summaries of the groups that are collapsed, made in the background.
#pragma once

#include <QTimer>
#include <map>

#include "gui/models/background.hpp"
#include "gui/models/group_summary.hpp"
#include "gui/models/session.hpp"
#include "gui/models/track_layout.hpp"

namespace rehearse::gui {

class GroupSummaries : public QObject {
  Q_OBJECT
public:
  explicit GroupSummaries(QObject* parent = nullptr);
  struct Made {
    int number = 0;                               // of its own, never used twice
    std::shared_ptr<const GroupSummary> summary;  // null: not yet
  };

  // Makes those of the collapsed groups among the lines, and forgets all others.
  void follow(const std::vector<Line>& lines, const Session& session);
  const Made* find(const GroupRef& group) const;  // null: it is not collapsed
  bool ready() const;

signals:
  void made();  // one or, of many, several

private:
  struct Known : Made {
    std::weak_ptr<const Timeline> of;
    std::vector<int> processes;
    std::unique_ptr<Latest> work;
  };
  std::map<GroupRef, Known> known_;
  int next_ = 1;
  QTimer told_;  // so that not each of many is painted by itself
};

}  // namespace rehearse::gui
