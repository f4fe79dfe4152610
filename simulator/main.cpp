// Implements the command line of `rehearse`. Exit status: 0: done; 1: the run failed; 2: the input is wrong.
#include <iostream>

#include "simulator/commands/collective/collective.hpp"
#include "simulator/commands/compare/compare.hpp"
#include "simulator/commands/convert/convert.hpp"
#include "simulator/commands/jobs/jobs.hpp"
#include "simulator/commands/kernel/kernel.hpp"
#include "simulator/commands/launch/launch.hpp"
#include "simulator/commands/plan/plan.hpp"
#include "simulator/commands/profile/profile.hpp"
#include "simulator/commands/show/show.hpp"
#include "simulator/commands/simulate/simulate.hpp"
#include "simulator/commands/sweep/sweep.hpp"
#include "simulator/commands/validate/validate.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/heap.hpp"
#include "simulator/terminal/program.hpp"

namespace {

using namespace rehearse;

constexpr Subcommand kSubcommands[] = {
    {"simulate", "Predict one step of a scenario", add_simulate},
    {"compare", "Compare scenarios side by side, and say why they differ", add_compare},
    {"list", "List the shipped presets", add_list},
    {"show", "Show a preset or a file, and the figures that follow from it", add_show},
    {"validate", "Predict measured runs and show the errors", add_validate},
    {"collective", "Predict a collective, as nccl-tests measures it", add_collective},
    {"sweep", "Predict every combination of varied keys", add_sweep},
    {"kernel", "Predict one kernel's time on a device, and what bounds it", add_kernel},
    {"profile", "Make a scenario from a trace of PyTorch's profiler", add_profile},
    {"plan", "Find the best plan for a model on a cluster, and what it costs", add_plan},
    {"jobs", "Run several jobs on one cluster, scheduling policies side by side", add_jobs},
    {"launch", "Write the file that starts the real job in a framework", add_launch},
    {"convert", "Write a scenario from the file that starts a job in a framework", add_convert},
    {"completion", "Print the script that completes these command lines in a shell", add_completion},
};

int run(int argc, char** argv) {
  CLI::App app{"Rehearse predicts how long a distributed training step takes on a cluster, and why."};
  app.set_version_flag("--version", "rehearse " REHEARSE_VERSION);
  return run_subcommand(app, kSubcommands, argc, argv, {std::cin, std::cout, std::cerr});
}

}  // namespace

int main(int argc, char** argv) {
  use_huge_pages_for_heap();
  return run_program("rehearse", [&] { return run(argc, argv); });
}
