// EASY backfilling (D. Lifka, The ANL/IBM SP Scheduling System, JSSPP 1995): as first come, first served, but
// the first job that does not fit has a reservation for the earliest time at which enough of the running jobs
// will have ended. A later job may start before it if it ends by then, or if it needs no more devices than
// the reservation leaves. The durations are those of the list, as if users estimated them exactly.
#include <algorithm>
#include <utility>
#include <vector>

#include "simulator/life/scheduling/policies.hpp"
#include "simulator/life/scheduling/policies/filling.hpp"
#include "simulator/life/scheduling/policies/waiting.hpp"

namespace rehearse {
namespace {

struct Reservation {
  double start_s = 0;
  int spare = 0;  // devices that it leaves then
};

Reservation reservation(const ClusterState& state, const Allocation& runs, int free, int needed) {
  std::vector<std::pair<double, int>> ends;
  for (std::size_t j = 0; j < state.jobs.size(); ++j)
    if (runs[j]) {
      const ActiveJob& job = *state.jobs[j];
      ends.emplace_back(job.running ? job.end_s : state.now_s + job.remaining_s, job.devices);
    }
  std::sort(ends.begin(), ends.end());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    free += ends[i].second;
    const bool last_then = i + 1 == ends.size() || ends[i + 1].first > ends[i].first;
    if (last_then && free >= needed) return {ends[i].first, free - needed};
  }
  return {kNever_s, 0};  // only if the job is larger than the cluster
}

}  // namespace

Allocation easy_backfill(const ClusterState& state) {
  Allocation runs;
  int free = keep_running(state, runs);
  if (free == 0) return runs;
  const std::vector<std::size_t> waiting = waiting_by_priority(state);
  std::size_t next = 0;
  for (; next < waiting.size() && state.jobs[waiting[next]]->devices <= free; ++next) {
    runs[waiting[next]] = true;
    free -= state.jobs[waiting[next]]->devices;
  }
  if (next == waiting.size() || free == 0) return runs;
  Reservation first = reservation(state, runs, free, state.jobs[waiting[next]]->devices);
  for (++next; next < waiting.size() && free > 0; ++next) {
    const ActiveJob& job = *state.jobs[waiting[next]];
    if (job.devices > free) continue;
    const bool ends_before = state.now_s + job.remaining_s <= first.start_s;
    if (!ends_before && job.devices > first.spare) continue;
    runs[waiting[next]] = true;
    free -= job.devices;
    if (!ends_before) first.spare -= job.devices;
  }
  return runs;
}

}  // namespace rehearse
