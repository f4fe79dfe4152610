// Computes the summaries of collapsed groups in the background.
#pragma once

#include <QTimer>
#include <map>

#include "gui/models/runs/session.hpp"
#include "gui/models/timeline/group_summary.hpp"
#include "gui/models/tracks/track_layout.hpp"
#include "gui/models/work/background.hpp"

namespace rehearse::gui {

class GroupSummaries : public QObject {
  Q_OBJECT
public:
  explicit GroupSummaries(QObject* parent = nullptr);
  struct Made {
    int number = 0;                               // unique, never reused
    std::shared_ptr<const GroupSummary> summary;  // null: not computed yet
  };

  // Starts the summaries of the collapsed groups among the lines and drops all others.
  void follow(const std::vector<Line>& lines, const Session& session);
  const Made* find(const GroupRef& group) const;  // null: the group is not collapsed
  bool ready() const;

signals:
  void made();  // one or several summaries are ready

private:
  struct Known : Made {
    std::weak_ptr<const Timeline> of;
    std::vector<int> processes;
    std::unique_ptr<Latest> work;
  };
  std::map<GroupRef, Known> known_;
  int next_ = 1;
  QTimer told_;  // batches made(), to avoid repainting for each summary
};

}  // namespace rehearse::gui
