// Writes the scripts that complete command lines in shells.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "simulator/terminal/command_table.hpp"

namespace rehearse {

inline constexpr std::array<std::string_view, 3> kShellNames = {"bash", "zsh", "fish"};

// Returns the script that completes a program's subcommands, options, values (allowed words, and the current
// names of presets and tables) and files in `shell`, one of kShellNames.
std::string completion_script(const CommandTable& program, std::string_view shell);

// The script for each shell.
std::string bash_completion(const CommandTable& program);
std::string zsh_completion(const CommandTable& program);
std::string fish_completion(const CommandTable& program);

// Returns the name of the function in bash and zsh: "_rehearse_gui".
std::string completion_function(const CommandTable& program);
// Quotes `text` as one word of a shell. fish interprets escapes inside quotes.
std::string in_shell_quotes(std::string_view text, bool fish = false);

}  // namespace rehearse
