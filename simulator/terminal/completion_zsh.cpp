#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/terminal/completion.hpp"

namespace rehearse {
namespace {

// Escapes brackets and colons, which have a meaning for _arguments.
std::string escape_zsh(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// Returns the action that completes the value of an argument.
std::string action(const CommandArgument& argument) {
  const std::string words = fmt::format("{}", fmt::join(argument.words, " "));
  if (argument.commas && !words.empty() && !argument.files)
    return fmt::format("_values -s , value {}", words);
  if (!words.empty() && argument.files)
    return fmt::format("{{_alternative \"names:name:({})\" \"files:file:_files\"}}", words);
  if (!words.empty()) return fmt::format("({})", words);
  if (argument.folders) return "_files -/";
  return argument.files ? "_files" : " ";
}

std::string specifications(const CommandTable& command, std::string_view indent) {
  std::string lines;
  for (const CommandArgument& option : command.options)
    for (const std::string& name : option.names) {
      // Nothing may follow --version and --help.
      const bool ends = name == "--help" || name == "-h" || name == "--version";
      const bool is_long = name.rfind("--", 0) == 0;
      std::string line = ends ? "(- *)" : option.repeats ? "*" : "";
      line += name + (option.takes_value && is_long ? "=" : "") + "[" + escape_zsh(option.help) + "]";
      if (option.takes_value) line += ":" + escape_zsh(value_name(option)) + ":" + action(option);
      lines += fmt::format(" \\\n{}{}", indent, in_shell_quotes(line));
    }
  for (std::size_t place = 0; place < command.arguments.size(); ++place) {
    const CommandArgument& argument = command.arguments[place];
    lines += fmt::format(
        " \\\n{}{}", indent,
        in_shell_quotes(fmt::format("{}:{}:{}", argument.repeats ? "*" : std::to_string(place + 1),
                                    escape_zsh(argument.names.front()), action(argument))));
  }
  return lines;
}

std::string of_commands(const CommandTable& program) {
  std::string commands, cases;
  for (const CommandTable& command : program.commands) {
    commands += fmt::format("    {}\n", in_shell_quotes(escape_zsh(command.name) + ":" + command.help));
    cases += fmt::format("        {})\n          _arguments{}\n          ;;\n", command.name,
                         specifications(command, "            "));
  }
  return fmt::format(R"(  local curcontext=$curcontext state line
  typeset -A opt_args
  local -a commands=(
{}  )
  _arguments -C{} \
    '1:command:->command' \
    '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      case $line[1] in
{}      esac
      ;;
  esac
)",
                     commands, specifications(program, "    "), cases);
}

}  // namespace

std::string zsh_completion(const CommandTable& program) {
  const std::string body = program.commands.empty()
                               ? fmt::format("  _arguments{}\n", specifications(program, "    "))
                               : of_commands(program);
  // In a file of $fpath, the call of the function completes; where the script is sourced, register the
  // function.
  return fmt::format(
      "#compdef {0}\n# Completion of {0} in zsh.\n{1}() {{\n{2}}}\n"
      "if [ \"$funcstack[1]\" = \"{1}\" ]; then\n  {1} \"$@\"\nelse\n  compdef {1} {0}\nfi\n",
      program.name, completion_function(program), body);
}

}  // namespace rehearse
