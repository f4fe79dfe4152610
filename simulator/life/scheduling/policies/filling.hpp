// Fills a cluster with jobs in an order, which most policies are made of.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "simulator/life/scheduling/cluster_state.hpp"

namespace rehearse {

// Gives devices to jobs by their key, least first, and jobs of the same key in the order of submission, from
// nothing: a job that runs and is not reached loses its devices. Jobs that do not fit are left out. Takes
// time in proportion to the jobs, and only sorts as many as run.
template <typename KeyOf>
Allocation fill_by_key(const ClusterState& state, KeyOf key_of) {
  using Entry = std::pair<decltype(key_of(*state.jobs[0])), std::size_t>;
  std::vector<Entry> heap;
  heap.reserve(state.jobs.size());
  int smallest = state.devices + 1;
  for (std::size_t j = 0; j < state.jobs.size(); ++j) {
    heap.emplace_back(key_of(*state.jobs[j]), j);
    smallest = std::min(smallest, state.jobs[j]->devices);
  }
  const auto later = [](const Entry& a, const Entry& b) { return b < a; };
  std::make_heap(heap.begin(), heap.end(), later);
  Allocation runs(state.jobs.size(), false);
  int free = state.devices;
  for (auto end = heap.end(); end != heap.begin() && free >= smallest; --end) {
    std::pop_heap(heap.begin(), end, later);
    const std::size_t j = (end - 1)->second;
    if (state.jobs[j]->devices > free) continue;
    runs[j] = true;
    free -= state.jobs[j]->devices;
  }
  return runs;
}

// The jobs that run keep their devices. Returns the devices that are left.
inline int keep_running(const ClusterState& state, Allocation& runs) {
  int free = state.devices;
  runs.assign(state.jobs.size(), false);
  for (std::size_t j = 0; j < state.jobs.size(); ++j)
    if (state.jobs[j]->running) {
      runs[j] = true;
      free -= state.jobs[j]->devices;
    }
  return free;
}

}  // namespace rehearse
