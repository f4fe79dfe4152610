// Implements `rehearse jobs`: runs a list of jobs on a cluster under several scheduling policies.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/life/scheduling/placement.hpp"
#include "simulator/terminal/output_format.hpp"
#include "simulator/terminal/subcommand.hpp"

namespace rehearse {

struct JobsArguments {
  std::string list;
  std::string cluster;                 // name of a preset, or a path
  int nodes = 0;                       // 0: as in the cluster's file
  std::vector<std::string> overrides;  // "cluster.key=value"
  std::string policies = "fifo,backfill,srtf,tiresias";
  PlacementKind placement = PlacementKind::packed;
  double start_cost_s = 0, preemption_cost_s = 0, interval_s = 0;
  int processes = 0;  // 0: one for each processor
  std::string trace;
  Format format = Format::text;
};
void run_jobs_command(const JobsArguments& arguments, std::ostream& out);

RunSubcommand add_jobs(CLI::App& options);

}  // namespace rehearse
