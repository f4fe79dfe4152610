// Writes manual pages.
#pragma once

#include <string>

#include "simulator/terminal/command_table.hpp"

namespace rehearse {

// Returns a program's page in section 1, as roff. `version` is like "rehearse 1.0".
std::string manual_page(const CommandTable& program, const std::string& version);

}  // namespace rehearse
