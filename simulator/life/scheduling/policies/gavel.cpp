// Gavel (D. Narayanan et al., OSDI 2020), max-min fairness on devices of one kind. Section 4.1 maximises the
// least of throughput(m, X) / throughput(m, equal) x scale_factor over the jobs m, where X is the share of
// time for which a job runs and scale_factor its number of devices. On devices of one kind throughput is in
// proportion to X, so that the least device time is maximised; water filling (section 4.3) gives away what
// the least one leaves.
//
// Rounds of six minutes bring the shares about (section 5): the jobs with the largest share relative to the
// share of time that they have received so far run next, and jobs that do not fit are skipped.
#include <algorithm>
#include <limits>
#include <numeric>

#include "simulator/life/scheduling/policies.hpp"
#include "simulator/life/scheduling/policies/filling.hpp"
#include "simulator/life/scheduling/policies/time_shares.hpp"

namespace rehearse {

std::vector<double> max_min_time_shares(const ClusterState& state) {
  std::vector<std::size_t> order(state.jobs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return state.jobs[a]->devices < state.jobs[b]->devices;
  });
  std::vector<double> shares(state.jobs.size(), 0);
  double left = state.devices;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double devices = state.jobs[order[i]]->devices;
    const double given = std::min(devices, left / static_cast<double>(order.size() - i));
    shares[order[i]] = given / devices;
    left -= given;
  }
  return shares;
}

Allocation gavel(const ClusterState& state) {
  const std::vector<double> shares = max_min_time_shares(state);
  std::size_t next = 0;
  return fill_by_key(state, [&](const ActiveJob& job) {
    const double share = shares[next++];  // jobs are asked for in their order
    const double age_s = state.now_s - job.submit_s;
    const double priority =
        job.held_s > 0 ? share * age_s / job.held_s : std::numeric_limits<double>::infinity();
    return -priority;
  });
}

}  // namespace rehearse
