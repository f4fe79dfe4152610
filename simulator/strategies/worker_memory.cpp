#include "simulator/strategies/worker_memory.hpp"

#include "simulator/scenario/fewer_microbatches.hpp"
#include "simulator/schedule/peak_memory.hpp"
#include "simulator/strategies/strategy.hpp"

namespace rehearse {

double worker_bytes_of(const Scenario& scenario) {
  const auto bytes_with = [&](int microbatches) {
    return peak_worker_bytes(*write_schedule(with_microbatches(scenario, microbatches)).schedule);
  };
  // No order of passes keeps more than two micro-batches a stage before it is full, except those that keep
  // all. Two of the steps that a full pipeline repeats are compared: if they need the same, then so do all.
  const int all = scenario.microbatches, round = scenario.strategy.pipeline, rest = all % round;
  const int few = 2 * round + rest, more = few + round;
  if (all >= 2 * more) {
    const double bytes = bytes_with(few);
    if (bytes_with(more) == bytes) return bytes;
  }
  return peak_worker_bytes(*write_schedule(scenario).schedule);
}

}  // namespace rehearse
