// What to change in a scenario to lose less time or memory.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// A clause, empty if there is nothing to advise, and the --set assignments to try.
struct Advice {
  std::string why;
  std::vector<std::string> sets;
  double more_bytes = 0;     // that a device would have to hold besides
  std::string or_else = {};  // what would do as well, and is no assignment
};

}  // namespace rehearse
