// Holds what all outputs of `rehearse jobs` tell, and declares them.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/life/scheduling/jobs_figures.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

struct PolicyAnswer {
  const SchedulingPolicy* policy = nullptr;
  JobsResult result;
  JobsFigures figures;
};

struct JobsAnswer {
  const JobList& list;
  const Cluster& cluster;
  const JobsRun& run;
  std::vector<PolicyAnswer> policies;
};

void write_jobs_text(const JobsAnswer& answer, std::ostream& out);
void write_jobs_json(const JobsAnswer& answer, std::ostream& out);
void write_jobs_csv(const JobsAnswer& answer, std::ostream& out);
// Writes a process for each policy, with a row for each node and a span for each time that a job was on it.
void write_jobs_trace(const JobsAnswer& answer, const std::string& path);

}  // namespace rehearse
