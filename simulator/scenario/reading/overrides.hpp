// Assignments that change a scenario after its file was read.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace rehearse {

struct Overrides {
  Overrides() = default;
  Overrides(std::initializer_list<std::string> set_here) : set(set_here) {}
  Overrides(std::vector<std::string> set_here, std::vector<std::string> varied_here = {})
      : set(std::move(set_here)), varied(std::move(varied_here)) {}

  // Of "--set": "strategy.tensor=2"; without a value, "strategy.tensor=", the key is removed.
  std::vector<std::string> set;
  // Of a point of a sweep, in the same form. Keys that do not apply at the point are ignored.
  std::vector<std::string> varied;
};

}  // namespace rehearse
