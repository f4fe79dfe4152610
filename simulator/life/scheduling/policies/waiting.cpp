#include "simulator/life/scheduling/policies/waiting.hpp"

#include <algorithm>

namespace rehearse {

std::vector<std::size_t> waiting_by_priority(const ClusterState& state) {
  std::vector<std::size_t> waiting;
  bool differ = false;
  for (std::size_t j = 0; j < state.jobs.size(); ++j)
    if (!state.jobs[j]->running) {
      differ = differ || state.jobs[j]->priority != state.jobs.front()->priority;
      waiting.push_back(j);
    }
  if (differ || (!waiting.empty() && state.jobs[waiting.front()]->priority != state.jobs.front()->priority))
    std::stable_sort(waiting.begin(), waiting.end(), [&](std::size_t a, std::size_t b) {
      return state.jobs[a]->priority > state.jobs[b]->priority;
    });
  return waiting;
}

}  // namespace rehearse
