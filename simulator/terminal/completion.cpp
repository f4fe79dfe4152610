#include "simulator/terminal/completion.hpp"

#include <algorithm>

namespace rehearse {

std::string completion_script(const CommandTable& program, std::string_view shell) {
  if (shell == "bash") return bash_completion(program);
  return shell == "zsh" ? zsh_completion(program) : fish_completion(program);
}

std::string completion_function(const CommandTable& program) {
  std::string name = "_" + program.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string in_shell_quotes(std::string_view text, bool fish) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'')
      quoted += fish ? "\\'" : "'\\''";
    else if (c == '\\' && fish)
      quoted += "\\\\";
    else
      quoted += c;
  }
  return quoted + "'";
}

}  // namespace rehearse
