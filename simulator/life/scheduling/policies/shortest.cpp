// The shortest first, which makes the mean completion time of jobs on one machine least (with preemption: L.
// Schrage, Operations Research 16, 1968). What is short may be the job's time (sjf without preemption, srtf
// with it), or its time on all its devices together (srsf: Tiresias, NSDI 2019). The durations are those of
// the list.
#include <algorithm>
#include <vector>

#include "simulator/life/scheduling/policies.hpp"
#include "simulator/life/scheduling/policies/filling.hpp"

namespace rehearse {

Allocation shortest_job(const ClusterState& state) {
  Allocation runs;
  int free = keep_running(state, runs);
  if (free == 0) return runs;
  std::vector<std::pair<double, std::size_t>> waiting;
  for (std::size_t j = 0; j < state.jobs.size(); ++j)
    if (!state.jobs[j]->running) waiting.emplace_back(state.jobs[j]->duration_s, j);
  std::make_heap(waiting.begin(), waiting.end(), std::greater<>());
  for (auto end = waiting.end(); end != waiting.begin(); --end) {
    std::pop_heap(waiting.begin(), end, std::greater<>());
    const std::size_t j = (end - 1)->second;
    if (state.jobs[j]->devices > free) break;
    runs[j] = true;
    free -= state.jobs[j]->devices;
  }
  return runs;
}

Allocation shortest_remaining_time(const ClusterState& state) {
  return fill_by_key(state, [](const ActiveJob& job) { return job.remaining_s; });
}

Allocation shortest_remaining_service(const ClusterState& state) {
  return fill_by_key(state, [](const ActiveJob& job) { return job.remaining_s * job.devices; });
}

}  // namespace rehearse
