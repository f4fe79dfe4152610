// Adds the options of `rehearse launch`.
#include <memory>

#include "simulator/commands/launch/launch.hpp"
#include "simulator/jobs/launch/launch_files.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {

RunSubcommand add_launch(CLI::App& options) {
  const auto arguments = std::make_shared<LaunchArguments>();
  std::vector<std::string> frameworks;
  for (const LaunchFramework& framework : launch_frameworks()) frameworks.emplace_back(framework.name);
  options.add_option("SCENARIO", arguments->scenario, "A scenario file; - for standard input")->required();
  add_repeated(options, "--set", arguments->overrides, "Override a key of the scenario: key=value");
  options.add_option("--for", arguments->framework, "megatron, deepspeed or torchtitan")
      ->required()
      ->check(one_of(frameworks));
  options.add_option("--out", arguments->out, "Write to FILE instead of standard output")->check(file_name());
  return [arguments](const Streams& streams) {
    run_launch(*arguments, streams.in, streams.out, streams.err);
    return kDone;
  };
}

}  // namespace rehearse
