// Adds the options of `rehearse plan`.
#include <memory>

#include "simulator/commands/plan/plan.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {

RunSubcommand add_plan(CLI::App& options) {
  const auto arguments = std::make_shared<PlanArguments>();
  options
      .add_option("SCENARIO", arguments->scenario,
                  "A scenario file, whose degrees and other keys of plans are ignored; - for standard input")
      ->required();
  add_repeated(options, "--set", arguments->overrides, "Override a key of the scenario: key=value");
  add_repeated(options, "--vary", arguments->vary, "Restrict the values that plans choose from: key=a,b,c");
  add_repeated(options, "--keep", arguments->keep, "Keep the scenario's value of a key in all plans");
  options
      .add_option("--cluster", arguments->clusters,
                  "Clusters to choose from: presets or files, separated by commas")
      ->delimiter(',')
      ->check(shipped_or_file({"topologies"}));
  options.add_option("--nodes", arguments->nodes, "Numbers of nodes to choose from: 8, 8,12 or 8..512")
      ->check(not_empty("8, 8,12 or 8..512"));
  options
      .add_option("--global-batch", arguments->global_batches,
                  "Global batches to choose from: 512, 512,1024 or 512..2048")
      ->check(not_empty("512, 512,1024 or 512..2048"));
  add_choice<PlanObjective>(options, "--objective", arguments->objective, kPlanObjectiveNames,
             "What to minimize, per sample: time, cost or energy");
  options
      .add_option("--reserve", arguments->reserve,
                  "Memory that stays free on each device: 4GiB or 5% (default: as CUDA, NCCL and cuBLAS need, and 5 %)")
      ->check(not_empty("such as 4GiB, or a share below 100%"));
  options.add_option("--budget", arguments->budget, "Largest cost of the entire training")
      ->check(CLI::PositiveNumber);
  options.add_option("--deadline", arguments->deadline_days, "Longest duration of the entire training, in days")
      ->check(CLI::PositiveNumber);
  options.add_option("--least-mfu", arguments->least_mfu, "Smallest model FLOPs utilization, such as 0.4")
      ->check(CLI::Range(0.0, 1.0));
  options
      .add_option("--tolerance", arguments->tolerance,
                  "Share by which the answer may be slower than the best plan (default: 0.005)")
      ->check(CLI::Range(0.0, 0.5));
  options
      .add_option("--top", arguments->top,
                  "Number of plans in the answer (default: 10; 1 searches no runners-up)")
      ->check(CLI::Range(1, 1000));
  options
      .add_option("--out", arguments->out,
                  "Write a scenario file for each plan, and the launch files, to this folder")
      ->check(folder_name());
  options
      .add_option("--results", arguments->results,
                  "Store simulated plans in FILE, continue from those in it, and share it with other ranks")
      ->check(file_name());
  options.add_flag("--force-new", arguments->force_new, "Start over, and discard what FILE contains");
  options.add_option("--jobs", arguments->jobs, "Simulations at once (default: all processors)")
      ->check(CLI::Range(1, 4096));
  options.add_flag("--what-if", arguments->what_if,
                   "Add the best plans with a faster network, with more memory, and with a slow node");
  options.add_flag("--exact", arguments->exact, "Extrapolate no step from a few of its micro-batches");
  add_progress(options, arguments->progress_lines);
  add_format(options, arguments->format);
  return [arguments](const Streams& streams) {
    return run_plan(*arguments, streams.in, streams.out, streams.err);
  };
}

}  // namespace rehearse
