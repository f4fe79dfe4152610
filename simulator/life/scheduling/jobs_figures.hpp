// Computes the figures by which policies are compared.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/life/scheduling/run_jobs.hpp"

namespace rehearse {

struct JobsFigures {
  // Completion: from submission to end. Queueing: the part of it without devices.
  double mean_completion_s = 0, median_completion_s = 0, p99_completion_s = 0;
  double mean_queueing_s = 0;
  double makespan_s = 0;   // from the first submission to the last end
  double utilization = 0;  // share of the devices' time, during the makespan, for which jobs held them
  // Completion over the job's duration alone, a mean over jobs that last: 1 is a cluster for each job alone.
  double mean_slowdown = 1;
  // Jain's index of the jobs' speeds (1 / slowdown): 1 if all are slowed down alike, 1 / jobs if one has all.
  double fairness = 1;
  std::int64_t preemptions = 0;
};

JobsFigures jobs_figures(const JobsRun& run, const JobsResult& result);

}  // namespace rehearse
