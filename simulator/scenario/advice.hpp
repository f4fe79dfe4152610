// Describes what to change in a scenario to lose less time or memory.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// A clause that says why (empty: no advice), and the --set assignments to try.
struct Advice {
  std::string why;
  std::vector<std::string> sets;
  double more_bytes = 0;     // additional bytes that a device would have to hold
  std::string or_else = {};  // an alternative that is not an assignment
};

}  // namespace rehearse
