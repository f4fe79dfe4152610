#include "simulator/scenario/fewer_microbatches.hpp"

namespace rehearse {

Scenario with_microbatches(const Scenario& scenario, int microbatches) {
  Scenario fewer = scenario;
  fewer.microbatches = microbatches;
  fewer.training.global_batch = microbatches * scenario.training.micro_batch * scenario.strategy.data;
  return fewer;
}

}  // namespace rehearse
