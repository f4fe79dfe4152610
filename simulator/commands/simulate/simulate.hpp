// Implements `rehearse simulate`: predicts one step of a scenario.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/terminal/output_format.hpp"
#include "simulator/terminal/subcommand.hpp"

namespace rehearse {

struct SimulateArguments {
  std::string scenario;                // path; "-": standard input
  std::vector<std::string> overrides;  // "key=value"
  Format format = Format::text;
  std::string trace;            // file for the timeline; empty: none
  std::string memory_trace;     // file for PyTorch's viewer of memory; empty: none
  bool memory = false;          // tells which tensors fill the fullest device; not for CSV
  bool strict = false;          // throws RunError if the scenario does not fit into memory
  bool uncertainty = false;     // reports the step time as an interval
  bool advice = true;           // tries changes that could make the step shorter; not for CSV
  bool progress_lines = false;  // writes progress as lines, even if `err` is not a terminal
};
// Simulates a scenario. The progress of a long run, and the notice that it will be long, go to `err`.
void run_simulate(const SimulateArguments& arguments, std::istream& in, std::ostream& out, std::ostream& err);

RunSubcommand add_simulate(CLI::App& options);

}  // namespace rehearse
