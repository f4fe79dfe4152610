// Implements `rehearse compare`: compares scenarios side by side, and says why they differ.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/terminal/output_format.hpp"
#include "simulator/terminal/subcommand.hpp"

namespace rehearse {

struct CompareArguments {
  std::vector<std::string> scenarios;  // paths; "-": standard input
  std::vector<std::string> variants;   // "key=value key=value": the first scenario with these changes
  std::vector<std::string> overrides;  // applied to all of them
  Format format = Format::text;
  bool strict = false;  // a scenario that does not fit into memory counts as failed
};
// Compares scenarios with the first one. A scenario that cannot be read or fails is reported on `err` and
// left out. Returns the exit status: 2 if one could not be read, otherwise 1 if one failed, otherwise 0.
int run_compare(const CompareArguments& arguments, std::istream& in, std::ostream& out, std::ostream& err);

RunSubcommand add_compare(CLI::App& options);

}  // namespace rehearse
