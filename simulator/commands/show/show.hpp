// Implements `rehearse list` and `rehearse show`: lists the shipped presets, and shows one of them or a file.
#pragma once

#include <array>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/terminal/subcommand.hpp"

namespace rehearse {

inline constexpr std::array<std::string_view, 6> kListNames = {"models",     "clusters",   "devices",
                                                               "strategies", "frameworks", "inputs"};
std::vector<std::string> strategy_names();  // without those of presets
void run_list(const std::string& what, std::ostream& out);
void run_show(const std::string& name, std::ostream& out);

RunSubcommand add_list(CLI::App& options);
RunSubcommand add_show(CLI::App& options);

}  // namespace rehearse
