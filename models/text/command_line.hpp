// How all programs read their command lines.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace rehearse {

// Refuses every other word, naming those allowed and the nearest of them.
CLI::Validator one_of(std::vector<std::string> names);
// Refuses "", which would be taken for an option that is not given.
CLI::Validator not_empty(std::string allowed);
CLI::Validator file_name();  // the same for the name of a file

// Nothing if the arguments are right; else the exit status, after printing help or what is wrong with them.
// An `app` that has subcommands wants one.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

}  // namespace rehearse
