// Implements `rehearse sweep`: predicts every combination of varied keys.
#pragma once

#include <array>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/terminal/subcommand.hpp"

namespace rehearse {

inline constexpr std::array<std::string_view, 2> kSweepFormatNames = {"csv", "jsonl"};
enum class SweepFormat { csv, jsonl };

struct SweepArguments {
  std::string input;                   // path of a scenario or sweep file; "-": standard input
  std::vector<std::string> vary;       // "key=a,b,c"
  std::vector<std::string> overrides;  // "key=value"
  std::string out;                     // output file; empty: standard output
  std::optional<SweepFormat> format;   // nullopt: by the extension of `out`, otherwise CSV
  int jobs = 0;                        // concurrent simulations; 0: the processors this process may use
  bool force_new = false;              // discards what `out` contains
  bool merge = false;                  // only merges the files of ranks
  bool strict = false;                 // a point that does not fit into memory counts as failed
};
// Simulates every combination of the varied values, several at once, each in a separate process. Points that
// `out` already contains are not computed again. Returns the exit status: 1 if a point has no result,
// otherwise 0. Progress and summary go to `err`.
int run_sweep(const SweepArguments& arguments, std::istream& in, std::ostream& err);

RunSubcommand add_sweep(CLI::App& options);

}  // namespace rehearse
