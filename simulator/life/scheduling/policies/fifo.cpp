// First come, first served: jobs start in the order of priority and submission and keep their devices. The
// first one that does not fit holds up all others, so that large jobs are not overtaken for ever.
#include "simulator/life/scheduling/policies.hpp"
#include "simulator/life/scheduling/policies/filling.hpp"
#include "simulator/life/scheduling/policies/waiting.hpp"

namespace rehearse {

Allocation first_come_first_served(const ClusterState& state) {
  Allocation runs;
  int free = keep_running(state, runs);
  if (free == 0) return runs;
  for (const std::size_t j : waiting_by_priority(state)) {
    if (state.jobs[j]->devices > free) break;
    runs[j] = true;
    free -= state.jobs[j]->devices;
  }
  return runs;
}

}  // namespace rehearse
