#include "simulator/commands/shortened_steps.hpp"

namespace rehearse {

Scenario with_microbatches(const Scenario& scenario, int microbatches) {
  Scenario fewer = scenario;
  fewer.microbatches = microbatches;
  fewer.training.global_batch = microbatches * scenario.training.micro_batch * scenario.strategy.data;
  return fewer;
}

double Extrapolation::operator()(double at_few, double at_more) const {
  return at_more + (at_more - at_few) / (more - few) * (all - more);
}

double ops_of(const Schedule& schedule) {
  double ops = 0;
  for (const Program& program : schedule.programs) ops += static_cast<double>(program.ops.size());
  return ops;
}

}  // namespace rehearse
