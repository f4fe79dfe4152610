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
CLI::Validator file_name();    // like not_empty(), for a file name
CLI::Validator folder_name();  // like not_empty(), for the name of a folder
// Accepts everything. Says that the value is the name of a preset of one of these folders (document.hpp), the
// name of a table of measurements ("benchmarks/measurements"), one of `others`, or the name of a file.
CLI::Validator shipped_or_file(const std::vector<std::string>& folders,
                               const std::vector<std::string>& others = {});

// Names of the validators, or beginnings of their names, by which command_table.hpp recognizes them.
inline constexpr const char *kOneOf = "one of", *kNotEmpty = "not empty", *kFile = "file",
                            *kFolder = "folder", *kShipped = "shipped:";

// Returns nullopt if the arguments are valid; otherwise prints help or the error and returns the exit status.
// Requires a subcommand if `app` has any. All programs have two options for packagers that --help does not
// list:
// `--manual` prints a manual page, and `--completion SHELL` prints the same as `rehearse completion`.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

}  // namespace rehearse
