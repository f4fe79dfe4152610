// Implements `rehearse profile`: makes a scenario from a trace of PyTorch's profiler.
#pragma once

#include <iosfwd>
#include <string>

#include "simulator/terminal/output_format.hpp"
#include "simulator/terminal/subcommand.hpp"

namespace rehearse {

struct ProfileArguments {
  std::string trace;       // trace of PyTorch's profiler: .json or .json.gz
  std::string out;         // file for the scenario; empty: none
  std::string cluster;     // name of a preset, or a file; empty: one that fits the trace's device
  double micro_batch = 0;  // samples; 0: as the trace states
  Format format = Format::text;
};
// Reports what a trace contains about the layers of a step, and makes a scenario from it.
void run_profile(const ProfileArguments& arguments, std::ostream& out);

RunSubcommand add_profile(CLI::App& options);

}  // namespace rehearse
