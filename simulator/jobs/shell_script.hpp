// Reads the commands of a shell script with their variables expanded, without executing anything.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/error.hpp"

namespace rehearse {

struct ShellWord {
  std::string text;
  int line = 0;  // where it stands, or where the variable that it comes from was set
};

struct ShellScript {
  std::vector<std::vector<ShellWord>> commands;  // without assignments
  std::map<std::string, ShellWord> batch;        // options of "#SBATCH" lines, without "--": "nodes"
  std::vector<ShellWord> documents;              // here-documents, expanded
};

// Follows assignments, arrays, defaults such as ${TP:-8}, arithmetic, and conditions that compare variables;
// of other conditions the first branch, and loop bodies once. A variable that the script does not set stays
// "${NAME}". Throws InputError if texts or nesting grow beyond what scripts need.
ShellScript read_shell(std::string_view text, const std::string& path);

}  // namespace rehearse
