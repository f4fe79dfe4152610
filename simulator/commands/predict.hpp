// From a scenario to its result: plan, run, evaluate.
#pragma once

#include "simulator/report/report.hpp"

namespace rehearse {

struct Prediction {
  Scenario scenario;
  Plan plan;
  Trace trace;
  Metrics metrics;
  Result result() const { return {scenario, plan, trace, metrics}; }
};

// In this process once only; in a child as often as wanted (simulator/engine/engine.hpp).
enum class Where { here, child };
Prediction predict(Scenario scenario, Where where);

}  // namespace rehearse
