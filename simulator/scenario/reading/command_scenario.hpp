// Reads the scenario that a command is given.
#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Options whose values are files that the command is going to write, each with its value; empty: none.
using OutputOptions = std::vector<std::pair<std::string, std::string>>;

// Reads it from a file, or from `in`, which is standard input, if the path is "-". Throws InputError if the
// scenario is invalid, if an output is a file from which the scenario is read or to which it refers, or if
// two outputs are the same file.
Scenario read_command_scenario(const std::string& path, const std::vector<std::string>& overrides,
                               std::istream& in, const OutputOptions& outputs = {});

}  // namespace rehearse
