// Adds the options of `rehearse profile`.
#include <memory>

#include "simulator/commands/profile/profile.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {

RunSubcommand add_profile(CLI::App& options) {
  const auto arguments = std::make_shared<ProfileArguments>();
  options
      .add_option("TRACE", arguments->trace,
                  "The file that prof.export_chrome_trace() wrote (.json or .json.gz)")
      ->required();
  options.add_option("--out", arguments->out, "Write the scenario (.toml)")->check(file_name());
  options
      .add_option("--cluster", arguments->cluster,
                  "The name of a cluster, or a file that describes one (default: by the device)")
      ->check(shipped_or_file({"topologies"}));
  options
      .add_option("--micro-batch", arguments->micro_batch,
                  "Samples in a forward pass (default: from the shapes in the trace)")
      ->check(CLI::Range(1, 1'000'000));
  add_format(options, arguments->format);
  return [arguments](const Streams& streams) {
    run_profile(*arguments, streams.out);
    return kDone;
  };
}

}  // namespace rehearse
