// Adds the options of `rehearse convert`.
#include <memory>

#include "simulator/commands/convert/convert.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {

RunSubcommand add_convert(CLI::App& options) {
  const auto arguments = std::make_shared<ConvertArguments>();
  options
      .add_option("FILE", arguments->job,
                  "A script or command line of Megatron-LM, or a configuration of DeepSpeed, torchtitan, Hugging "
                  "Face's Trainer, accelerate or axolotl; - for standard input")
      ->required();
  add_repeated(options, "--set", arguments->overrides, "Set or override a key of the scenario: key=value");
  options.add_option("--out", arguments->out, "Write to FILE instead of standard output")->check(file_name());
  return [arguments](const Streams& streams) {
    run_convert(*arguments, streams.in, streams.out);
    return kDone;
  };
}

}  // namespace rehearse
