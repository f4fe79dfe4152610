#include "simulator/commands/predict.hpp"

#include "simulator/engine/engine.hpp"

namespace rehearse {

Prediction predict(Scenario scenario, Where where) {
  Prediction p;
  p.scenario = std::move(scenario);
  p.plan = write_schedule(p.scenario);
  Phase phase;
  phase.schedule = p.plan.schedule;
  phase.repeats = p.plan.schedule->repeats(p.scenario.steps);
  Run run;
  run.jobs.push_back({p.scenario.name, {phase}, p.plan.endpoints});
  const auto execute = where == Where::here ? simulate : simulate_in_child;
  p.trace = execute(run, *p.scenario.cluster, p.scenario.engine);
  p.metrics = evaluate(p.trace, p.scenario, p.plan);
  return p;
}

}  // namespace rehearse
