// Implements `rehearse launch`: writes the file that starts a scenario's job in a framework.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/terminal/subcommand.hpp"

namespace rehearse {

struct LaunchArguments {
  std::string scenario;                // path; "-": standard input
  std::vector<std::string> overrides;  // "key=value"
  std::string framework;               // one of launch_frameworks()
  std::string out;                     // output file; empty: standard output
};
// Writes the file that starts a scenario's job in a framework to `out` or to arguments.out, and reports on
// `err` what the framework does differently from the scenario. Throws RunError if the framework cannot run
// the job.
void run_launch(const LaunchArguments& arguments, std::istream& in, std::ostream& out, std::ostream& err);

RunSubcommand add_launch(CLI::App& options);

}  // namespace rehearse
