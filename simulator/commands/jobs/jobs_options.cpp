// Adds the options of `rehearse jobs`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "simulator/commands/jobs/jobs.hpp"
#include "simulator/life/scheduling/policies.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {

RunSubcommand add_jobs(CLI::App& options) {
  const auto arguments = std::make_shared<JobsArguments>();
  options.add_option("LIST", arguments->list, "The jobs: CSV, or a recorded trace")
      ->required()
      ->check(file_name());
  options.add_option("--cluster", arguments->cluster, "The name of a cluster, or a file that describes one")
      ->required()
      ->check(shipped_or_file({"topologies"}));
  options.add_option("--nodes", arguments->nodes, "Nodes (default: those of the cluster's file)")
      ->check(CLI::Range(1, 1'000'000));
  add_repeated(options, "--set", arguments->overrides, "Override a key of the cluster: cluster.key=value");
  std::vector<std::string_view> policies;
  for (const SchedulingPolicy& policy : scheduling_policies()) policies.push_back(policy.name);
  options.add_option("--policy", arguments->policies,
                     fmt::format("Scheduling policies, separated by commas: {} (default: {})",
                                 fmt::join(policies, ", "), arguments->policies));
  add_choice<PlacementKind>(options, "--placement", arguments->placement, kPlacementNames,
                            "Which devices a job gets: packed, spread, topology (default: packed)");
  options
      .add_option("--start-cost", arguments->start_cost_s,
                  "Seconds for which a job holds its devices before it works, at each start (default: 0)")
      ->check(CLI::Range(0.0, 1e6));
  options
      .add_option("--preemption-cost", arguments->preemption_cost_s,
                  "Seconds in addition after a preemption, to save and load its checkpoint (default: 0)")
      ->check(CLI::Range(0.0, 1e6));
  options
      .add_option("--interval", arguments->interval_s,
                  "Seconds between decisions of the policies (default: at once; gavel: 360)")
      ->check(CLI::Range(0.001, 1e6));
  options.add_option("--jobs", arguments->processes, "Processes at once (default: one for each processor)")
      ->check(CLI::Range(1, 4096));
  options
      .add_option("--trace", arguments->trace, "Write who ran where (.json or .json.gz; Perfetto opens it)")
      ->check(file_name());
  add_format(options, arguments->format);
  return [arguments](const Streams& streams) {
    run_jobs_command(*arguments, streams.out);
    return kDone;
  };
}

}  // namespace rehearse
