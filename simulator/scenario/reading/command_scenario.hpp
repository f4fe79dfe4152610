// The scenario that a command is given.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// From a file, or from `in`, which is standard input, if the path is "-". `output` is the file that the
// command is going to write, the value of `option`; empty: none. InputError, also if that is a file which the
// scenario is read from or points to.
Scenario read_command_scenario(const std::string& path, const std::vector<std::string>& overrides,
                               std::istream& in, const std::string& output = "",
                               const std::string& option = "--trace");

}  // namespace rehearse
