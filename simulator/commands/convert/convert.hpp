// Implements `rehearse convert`: writes a job file of a framework as a scenario.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/terminal/subcommand.hpp"

namespace rehearse {

struct ConvertArguments {
  std::string job;                     // path; "-": standard input
  std::vector<std::string> overrides;  // "key=value"
  std::string out;                     // output file; empty: standard output
};
// Writes a job file of a framework as a scenario file that gives the same prediction, with comments that say
// where each key is from. Throws InputError if it is no job file, or if keys that it leaves open are missing.
void run_convert(const ConvertArguments& arguments, std::istream& in, std::ostream& out);

RunSubcommand add_convert(CLI::App& options);

}  // namespace rehearse
