#include "simulator/terminal/subcommand.hpp"

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/completion.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {

int run_subcommand(CLI::App& app, std::span<const Subcommand> subcommands, int argc, char** argv,
                   const Streams& streams) {
  app.require_subcommand(0, 1);  // parse_command_line reports a missing one
  std::vector<std::pair<const CLI::App*, RunSubcommand>> added;
  for (const Subcommand& subcommand : subcommands) {
    CLI::App* options = app.add_subcommand(subcommand.name, subcommand.help);
    added.emplace_back(options, subcommand.add(*options));
  }
  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  for (const auto& [options, run] : added)
    if (options->parsed()) return run(streams);
  return kDone;
}

RunSubcommand add_completion(CLI::App& options) {
  const auto shell = std::make_shared<std::string>();
  options.add_option("SHELL", *shell, "bash, zsh or fish; in bash: source <(rehearse completion bash)")
      ->required()
      ->check(one_of(kShellNames));
  return [shell, &options](const Streams& streams) {
    streams.out << completion_script(command_table(*options.get_parent()), *shell);
    return kDone;
  };
}

}  // namespace rehearse
