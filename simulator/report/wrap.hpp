// Wraps text for a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace rehearse {

inline constexpr std::size_t kTextWidth = 110;  // characters

// Breaks lines between words, but not between a number and its unit; every line is indented by two.
std::string wrapped(const std::string& text);

}  // namespace rehearse
