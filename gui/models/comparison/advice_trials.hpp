// Simulates the advice for runs in the background.
#pragma once

#include <QObject>
#include <QString>
#include <map>
#include <vector>

#include "gui/models/runs/session.hpp"
#include "gui/models/scenario/command_runner.hpp"

namespace rehearse::gui {

struct AdviceTrial {
  enum class State { untried, waiting, done, failed } state = State::untried;
  Advice advice;
  QStringList settings;  // that the advice changes, as "key=value"
  double step_time_s = 0, samples_per_s = 0;
  MemoryUse memory;
  QString trace;  // trace file of the simulated step; exists as long as the AdviceTrials object does. Empty
                  // if it was simulated when the run's own trace was made
  QString error;  // why the trial failed
};

// Describes the result of a trial relative to its run: "61.2 s a step, 15.4 % less". Empty: not tried yet.
QString outcome_text(const Run& run, const AdviceTrial& trial);
enum class Verdict { unknown, better, same, worse };
Verdict verdict_on(const Run& run, const AdviceTrial& trial);

class AdviceTrials : public QObject {
  Q_OBJECT
public:
  explicit AdviceTrials(Session& session, QObject* parent = nullptr);

  // Whether the run has advice, or changes that were tried already, and a scenario to try them on.
  static bool can_try(const Run& run);
  // Returns a run's trials: the changes that its trace says were simulated, then its other advice, untried
  // until try_all().
  const std::vector<AdviceTrial>& of(int id);
  // Simulates the untried advice of a run one by one; stops when the run is removed or its advice changes.
  void try_all(int id);
  bool busy() const { return runner_.busy() || runner_.queued() > 0; }
  CommandRunner& runner() { return runner_; }

signals:
  void changed(int run);

private:
  struct Tried {
    std::vector<AdviceTrial> trials;
    std::vector<int> ids;  // job numbers of the runner, by trial; 0: not started
    double capacity = 0;   // memory of the run's devices, as known when the trials were set up
  };
  Tried& tried(int id);
  void drop(Tried& known);
  void follow_runs();
  void take(const RunOutcome& outcome);

  Session& session_;
  CommandRunner runner_;
  std::map<int, Tried> runs_;
};

}  // namespace rehearse::gui
