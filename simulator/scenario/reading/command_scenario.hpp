// Reads the scenario that a command is given.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Reads it from a file, or from `in`, which is standard input, if the path is "-". `output` is the file that
// the command is going to write, the value of `option`; empty: none. Throws InputError if the scenario is
// invalid, or if `output` is a file from which the scenario is read or to which it refers.
Scenario read_command_scenario(const std::string& path, const std::vector<std::string>& overrides,
                               std::istream& in, const std::string& output = "",
                               const std::string& option = "--trace");

}  // namespace rehearse
