// Simulates the advice of runs in the background.
#pragma once

#include <QObject>
#include <QString>
#include <map>
#include <vector>

#include "gui/models/command_runner.hpp"
#include "gui/models/session.hpp"

namespace rehearse::gui {

struct AdviceTrial {
  enum class State { untried, waiting, done, failed } state = State::untried;
  Advice advice;
  QStringList settings;  // of the advice
  double step_time_s = 0, samples_per_s = 0;
  MemoryUse memory;
  QString trace;  // of the simulated step, for as long as the AdviceTrials are there
  QString error;  // why it failed
};

// The result of a trial against its run: "61.2 s a step, 15.4 % less". Empty: not tried.
QString outcome_text(const Run& run, const AdviceTrial& trial);
enum class Verdict { unknown, better, same, worse };
Verdict verdict_on(const Run& run, const AdviceTrial& trial);

class AdviceTrials : public QObject {
  Q_OBJECT
public:
  explicit AdviceTrials(Session& session, QObject* parent = nullptr);

  // Whether the run has advice, and a scenario to try it on.
  static bool can_try(const Run& run);
  // In the order of the advice; all untried until try_all().
  const std::vector<AdviceTrial>& of(int run);
  // Simulates the untried advice one by one; stops when the run is removed or its advice changes.
  void try_all(int run);
  bool busy() const { return runner_.busy() || runner_.queued() > 0; }
  CommandRunner& runner() { return runner_; }

signals:
  void changed(int run);

private:
  struct Tried {
    std::vector<AdviceTrial> trials;
    std::vector<int> ids;  // of the runner, by trial; 0: not started
  };
  Tried& tried(int run);
  void drop(Tried& tried);
  void follow_runs();
  void take(const RunOutcome& outcome);

  Session& session_;
  CommandRunner runner_;
  std::map<int, Tried> runs_;
};

}  // namespace rehearse::gui
