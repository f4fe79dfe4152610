// A matcher for a part of a text, by one name in Catch2 2 and 3, where Contains is for elements of ranges.
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
