// Reads the subcommands, options and allowed values of a command line from its CLI::App, the common source of
// --help, manual pages (manual_page.hpp) and completion in shells (completion.hpp).
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace rehearse {

struct CommandArgument {
  std::vector<std::string> names;  // "-h" and "--help"; a positional argument has one: "SCENARIO"
  std::string help;
  bool takes_value = false, required = false;
  bool repeats = false;  // a positional argument takes all words that follow; an option may be given again
  bool commas = false;   // the value is a list, separated by commas
  // The value is one of these words; with `files`, one of these or the name of a file.
  std::vector<std::string> words;
  bool files = false, folders = false;
};

struct CommandTable {
  std::string name, help;  // "simulate", "Predict one step of a scenario"
  std::vector<CommandArgument> options, arguments;
  std::vector<CommandTable> commands;
};

// Requires that the version which `app` prints begins with the program's name: "rehearse 1.0".
CommandTable command_table(CLI::App& app);

// Returns the word that stands for an argument's value in help and manual pages: "text|json|csv", "FILE",
// "FOLDER", "NAME", "KEY", "KEY=VALUE" or "VALUE".
std::string value_name(const CommandArgument& argument);

}  // namespace rehearse
