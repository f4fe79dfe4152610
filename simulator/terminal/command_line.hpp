// Parses the command lines of all programs.
#pragma once

#include <CLI/CLI.hpp>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/terminal/output_format.hpp"

namespace rehearse {

// Rejects all other words; the error lists the allowed ones and suggests the nearest.
CLI::Validator one_of(std::vector<std::string> names);
template <std::size_t N>
CLI::Validator one_of(const std::array<std::string_view, N>& names) {
  return one_of(std::vector<std::string>(names.begin(), names.end()));
}
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

// Adds an option that may be given again, with a value each time.
CLI::Option* add_repeated(CLI::App& app, const char* option, std::vector<std::string>& values,
                          const char* help);
// Adds an option whose value is one of these names, the index of which `take` receives.
CLI::Option* add_choice(CLI::App& app, const char* option, const std::vector<std::string>& names,
                        const std::function<void(std::size_t index)>& take, const char* help);
// The same for an enumeration whose enumerators have these names, in their order.
template <typename Enum, typename Value, std::size_t N>
CLI::Option* add_choice(CLI::App& app, const char* option, Value& value,
                        const std::array<std::string_view, N>& names, const char* help) {
  return add_choice(
      app, option, {names.begin(), names.end()}, [&value](std::size_t i) { value = static_cast<Enum>(i); },
      help);
}
void add_format(CLI::App& app, Format& format);    // --format text|json|csv
void add_progress(CLI::App& app, bool& as_lines);  // --progress auto|lines

// Returns nullopt if the arguments are valid; otherwise prints help or the error and returns the exit status.
// Requires a subcommand if `app` has any. All programs have two options for packagers that --help does not
// list:
// `--manual` prints a manual page, and `--completion SHELL` prints the same as `rehearse completion`.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

}  // namespace rehearse
