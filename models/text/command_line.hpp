// Parses the command lines of all programs.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace rehearse {

// Rejects all other words; the error lists the allowed ones and suggests the nearest.
CLI::Validator one_of(std::vector<std::string> names);
// Rejects "", which would count as an option that is not given.
CLI::Validator not_empty(std::string allowed);
CLI::Validator file_name();  // like not_empty(), for a file name

// Returns nullopt if the arguments are valid; otherwise prints help or the error and returns the exit status.
// Requires a subcommand if `app` has any.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

}  // namespace rehearse
