#include "simulator/life/scheduling/policies/waiting.hpp"

#include <algorithm>

namespace rehearse {

std::vector<std::size_t> waiting_by_priority(const ClusterState& state) {
  std::vector<std::size_t> waiting;
  for (std::size_t j = 0; j < state.jobs.size(); ++j)
    if (!state.jobs[j]->running) waiting.push_back(j);
  const auto before = [&](std::size_t a, std::size_t b) {
    return state.jobs[a]->priority > state.jobs[b]->priority;
  };
  if (!std::is_sorted(waiting.begin(), waiting.end(), before))
    std::stable_sort(waiting.begin(), waiting.end(), before);
  return waiting;
}

}  // namespace rehearse
