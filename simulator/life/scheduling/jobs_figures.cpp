#include "simulator/life/scheduling/jobs_figures.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse {
namespace {

// The smallest value that is at least as large as `share` of all (nearest rank).
double quantile(std::vector<double>& values, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

JobsFigures jobs_figures(const JobsRun& run, const JobsResult& result) {
  JobsFigures figures;
  const std::vector<ListedJob>& jobs = *run.jobs;
  std::vector<double> completions;
  double last_s = 0, device_seconds = 0, speeds = 0, squares = 0, slowdowns = 0;
  std::size_t lasting = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const JobOutcome& outcome = result.outcomes[j];
    const double completion_s = outcome.end_s - jobs[j].submit_s;
    completions.push_back(completion_s);
    figures.mean_completion_s += completion_s;
    figures.mean_queueing_s += completion_s - outcome.held_s;
    figures.preemptions += outcome.preemptions;
    last_s = std::max(last_s, outcome.end_s);
    device_seconds += outcome.held_s * jobs[j].devices;
    if (jobs[j].duration_s > 0) {
      const double speed = jobs[j].duration_s / completion_s;
      ++lasting;
      slowdowns += 1 / speed;
      speeds += speed;
      squares += speed * speed;
    }
  }
  const auto count = static_cast<double>(jobs.size());
  figures.mean_completion_s /= count;
  figures.mean_queueing_s = std::max(0.0, figures.mean_queueing_s / count);
  figures.median_completion_s = quantile(completions, 0.5);
  figures.p99_completion_s = quantile(completions, 0.99);
  figures.makespan_s = last_s - jobs.front().submit_s;
  if (figures.makespan_s > 0)
    figures.utilization =
        device_seconds / (figures.makespan_s * static_cast<double>(run.nodes) * run.devices_per_node);
  if (lasting > 0) {
    figures.mean_slowdown = slowdowns / static_cast<double>(lasting);
    figures.fairness = speeds * speeds / (static_cast<double>(lasting) * squares);
  }
  return figures;
}

}  // namespace rehearse
