// Defines a subcommand of a program as one line of a table: its name, its help, and what adds its options.
#pragma once

#include <functional>
#include <iosfwd>
#include <span>

namespace CLI {
class App;
}

namespace rehearse {

struct Streams {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
};

// Runs a subcommand whose options have been parsed. Returns the exit status (program.hpp).
using RunSubcommand = std::function<int(const Streams&)>;

struct Subcommand {
  const char* name;
  const char* help;
  // Adds the options, with their help and the values that they allow (command_line.hpp).
  RunSubcommand (*add)(CLI::App& options);
};

// Parses the command line of a program that has these subcommands, and runs the one that it names. Returns the
// exit status.
int run_subcommand(CLI::App& app, std::span<const Subcommand> subcommands, int argc, char** argv,
                   const Streams& streams);

// `completion SHELL` of all programs: prints the script that completes their command lines in a shell.
RunSubcommand add_completion(CLI::App& options);

}  // namespace rehearse
