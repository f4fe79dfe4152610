// Keeps schedules that were written and checked, for predictions of scenarios that have the same ones.
#pragma once

#include <list>
#include <string>

#include "simulator/commands/predicting/predict.hpp"

namespace rehearse {

class KnownSchedules {
public:
  // Returns what write_schedule() returns, whose schedule check() has accepted. Throws as these two do. The
  // scenario must be as it was read, but for its number of micro-batches (strategies/schedule_key.hpp).
  Plan plan_of(const Scenario& scenario);
  int written() const { return written_; }  // how many schedules were written, and not known

private:
  struct Known {
    std::string key;
    Plan plan;
    std::size_t assumptions = 0;  // number of notes on the scenario, with which those of the plan begin
    double ops = 0;
  };
  void keep(Known known);

  std::list<Known> known_;  // those used last first
  double ops_ = 0;          // of all known schedules
  int written_ = 0;
};

// Like predict() of the same scenario, with the schedules that are known.
Prediction predict_with(KnownSchedules& known, Scenario scenario, Where where);
// Writes the schedules that predict_with() will need first. Does not simulate.
void prepare_schedules(KnownSchedules& known, const Scenario& scenario);

// Like predict(), for a plan whose schedule check() has accepted.
Prediction predict_checked(Scenario scenario, Plan plan, Where where, const WatchPrediction& watch = {});

}  // namespace rehearse
