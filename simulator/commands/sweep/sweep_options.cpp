// Adds the options of `rehearse sweep`.
#include <memory>

#include "simulator/commands/sweep/sweep.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {

RunSubcommand add_sweep(CLI::App& options) {
  const auto arguments = std::make_shared<SweepArguments>();
  options.add_option("INPUT", arguments->input, "A scenario or a sweep file; - for standard input")->required();
  add_repeated(options, "--vary", arguments->vary, "Vary a key: key=1,2,4 or key=1..8, 0..64+16, 1..64*2");
  add_repeated(options, "--set", arguments->overrides, "Override a key at every point: key=value");
  options
      .add_option("--out", arguments->out,
                  "Append results to FILE, and compute only the points that it lacks")
      ->check(file_name());
  add_choice<SweepFormat>(options, "--format", arguments->format, kSweepFormatNames, "csv or jsonl");
  options.add_option("--jobs", arguments->jobs, "Simulations at once (default: all processors)")
      ->check(CLI::Range(1, 4096));
  options.add_flag("--force-new", arguments->force_new, "Start over, and discard what FILE contains");
  options.add_flag("--strict", arguments->strict,
                   "Count points that do not fit into device memory as failed (exit status 1)");
  options.add_flag("--merge", arguments->merge,
                   "Compute nothing; gather the ranks' FILE.0, FILE.1, ... into FILE");
  return [arguments](const Streams& streams) { return run_sweep(*arguments, streams.in, streams.err); };
}

}  // namespace rehearse
