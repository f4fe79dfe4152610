// Provides a matcher for part of a text under one name for Catch2 2 and 3, where Contains matches elements of
// ranges.
#pragma once

#include <string>

#include "tests/catch.hpp"

namespace rehearse {

inline auto contains_text(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}

}  // namespace rehearse
