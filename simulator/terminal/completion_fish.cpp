#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/terminal/completion.hpp"

namespace rehearse {
namespace {

// `begin` is the command with its condition; each line adds one option to it.
std::string of_options(const CommandTable& command, const std::string& begin) {
  std::string lines;
  for (const CommandArgument& option : command.options) {
    std::string line = begin;
    for (const std::string& name : option.names)
      line += name.rfind("--", 0) == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (option.takes_value) line += option.files ? " -r -F" : " -x";
    if (option.folders) line += " -a '(__fish_complete_directories)'";
    if (!option.words.empty())
      line += fmt::format(" -a {}", in_shell_quotes(fmt::format("{}", fmt::join(option.words, " ")), true));
    lines += fmt::format("{} -d {}\n", line, in_shell_quotes(option.help, true));
  }
  return lines;
}

std::string of_arguments(const CommandTable& command, const std::string& begin) {
  std::string lines;
  for (const CommandArgument& argument : command.arguments) {
    if (!argument.words.empty())
      lines += fmt::format("{} -a {}\n", begin,
                           in_shell_quotes(fmt::format("{}", fmt::join(argument.words, " ")), true));
    if (argument.files) lines += begin + " -F\n";
  }
  return lines;
}

}  // namespace

std::string fish_completion(const CommandTable& program) {
  const std::string all = "complete -c " + program.name;
  std::string script = fmt::format("# Completion of {} in fish.\n{} -f\n", program.name, all);
  if (program.commands.empty()) return script + of_options(program, all) + of_arguments(program, all);
  const std::string first = all + " -n __fish_use_subcommand";
  script += of_options(program, first);
  for (const CommandTable& command : program.commands) {
    script += fmt::format("{} -a {} -d {}\n", first, command.name, in_shell_quotes(command.help, true));
    const std::string begin = fmt::format("{} -n '__fish_seen_subcommand_from {}'", all, command.name);
    script += of_options(command, begin) + of_arguments(command, begin);
  }
  return script;
}

}  // namespace rehearse
