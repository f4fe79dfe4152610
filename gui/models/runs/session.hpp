// Holds the runs of a window, in order, and which of them are shown.
#pragma once

#include <QObject>
#include <memory>
#include <vector>

#include "gui/models/runs/run.hpp"
#include "gui/models/runs/view_state.hpp"

namespace rehearse::gui {

class Session : public QObject {
  Q_OBJECT
public:
  using QObject::QObject;
  using RunPointer = std::shared_ptr<const Run>;

  const std::vector<RunPointer>& runs() const { return runs_; }  // includes runs that are not shown
  RunPointer run(int id) const;                                  // null if it was removed
  // Runs on the timeline and in comparisons, in the order of runs(); the first is the base.
  std::vector<RunPointer> shown() const;
  // The run that single-run views show; null if there is none.
  RunPointer current() const { return run(current_); }

  int add(Run run);  // shows it and makes it current; returns its id
  // Replaces the run with the same id.
  void replace(Run run);
  void remove(int id);
  void rename(int id, const std::string& name);
  void set_shown(int id, bool shown);
  bool is_shown(int id) const;
  void set_current(int id);
  void set_base(int id);         // moves it to the front
  void move(int id, int place);  // `place`: index in runs()

signals:
  void runs_changed();       // added, removed, moved, renamed
  void run_changed(int id);  // replaced
  void shown_changed();
  void current_changed();

private:
  std::vector<RunPointer> runs_;
  std::vector<int> hidden_;
  int current_ = 0;
  int next_id_ = 1;
};

}  // namespace rehearse::gui
