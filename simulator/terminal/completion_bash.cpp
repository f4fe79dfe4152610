#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/terminal/completion.hpp"

namespace rehearse {
namespace {

// Sets $words, $files (f: files, d: folders) and $commas, from which the script makes the candidates.
std::string candidates(const CommandArgument& argument) {
  std::string set;
  if (!argument.words.empty())
    set += fmt::format(" words={}", in_shell_quotes(fmt::format("{}", fmt::join(argument.words, " "))));
  if (argument.files) set += " files=f";
  if (argument.folders) set += " files=d";
  if (argument.commas) set += " commas=1";
  return set.empty() ? " :" : set;
}

// Returns the options of `command` that take values, as patterns of "COMMAND OPTION".
std::vector<std::string> options_with_values(const CommandTable& command, const std::string& name) {
  std::vector<std::string> patterns;
  for (const CommandArgument& option : command.options)
    for (const std::string& spelling : option.names)
      if (option.takes_value) patterns.push_back(in_shell_quotes(name + " " + spelling));
  return patterns;
}

std::string values_of_options(const CommandTable& command, const std::string& name) {
  std::string cases;
  for (const CommandArgument& option : command.options)
    for (const std::string& spelling : option.names)
      if (option.takes_value)
        cases += fmt::format("    {}){} ;;\n", in_shell_quotes(name + " " + spelling), candidates(option));
  return cases;
}

std::string names_of_options(const CommandTable& command, const std::string& name) {
  std::vector<std::string> names;
  for (const CommandArgument& option : command.options)
    for (const std::string& spelling : option.names) names.push_back(spelling);
  return fmt::format("    {}) words={} ;;\n", in_shell_quotes(name + " -"),
                     in_shell_quotes(fmt::format("{}", fmt::join(names, " "))));
}

std::string values_of_arguments(const CommandTable& command, const std::string& name) {
  std::string cases;
  for (std::size_t place = 0; place < command.arguments.size(); ++place) {
    const CommandArgument& argument = command.arguments[place];
    const std::string pattern = argument.repeats ? in_shell_quotes(name + " ") + "*"
                                                 : in_shell_quotes(fmt::format("{} {}", name, place));
    cases += fmt::format("    {}){} ;;\n", pattern, candidates(argument));
  }
  return cases;
}

// The script walks over the words before the one to complete, to find the subcommand, the option that expects
// a value, and the position of the next positional argument. Bash splits "--option=value" at "=".
constexpr std::string_view kScript = R"(# Completion of {program} in bash.
{function}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} command= option= place=0 words= files= commas= before= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ -n $option ]]; then
      [[ ${{COMP_WORDS[i]}} == '=' ]] || option=
      continue
    fi
    case "$command ${{COMP_WORDS[i]}}" in
      {with_values}) option=${{COMP_WORDS[i]}} ;;
      *' -'?*) ;;
{subcommands}      *) ((++place)) ;;
    esac
  done
  [[ -n $option && $word == '=' ]] && word=
  [[ -z $option && $word == -* ]] && option=-
  case "$command ${{option:-$place}}" in
{cases}  esac
  if [[ -n $commas && $word == *,* ]]; then
    before=${{word%,*}},
    word=${{word##*,}}
  fi
  [[ -n $files ]] && compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(
    [[ -n $words ]] && compgen -P "$before" -W "$words" -- "$word"
    [[ -n $files ]] && compgen -P "$before" "-$files" -- "$word"
  )
}}
complete -F {function} {program}
)";

}  // namespace

std::string bash_completion(const CommandTable& program) {
  std::vector<std::string> patterns = options_with_values(program, ""), names;
  std::string cases = values_of_options(program, "") + names_of_options(program, "");
  for (const CommandTable& command : program.commands) {
    for (const std::string& pattern : options_with_values(command, command.name)) patterns.push_back(pattern);
    cases += values_of_options(command, command.name) + names_of_options(command, command.name) +
             values_of_arguments(command, command.name);
    names.push_back(command.name);
  }
  std::string subcommands;
  if (names.empty()) {
    cases += values_of_arguments(program, "");
  } else {
    cases += fmt::format("    ' 0') words='{}' ;;\n", fmt::join(names, " "));
    subcommands = fmt::format("      ' {}') command=${{COMP_WORDS[i]}} ;;\n", fmt::join(names, "' | ' "));
  }
  const std::string with_values = fmt::format("{}", fmt::join(patterns, " | "));
  return fmt::format(kScript, fmt::arg("program", program.name),
                     fmt::arg("function", completion_function(program)), fmt::arg("with_values", with_values),
                     fmt::arg("subcommands", subcommands), fmt::arg("cases", cases));
}

}  // namespace rehearse
