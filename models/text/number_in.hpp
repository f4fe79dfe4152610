// Parses a text that is a number and nothing else, identically in every locale.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>

namespace rehearse {

// Returns the number, or nothing if `text` contains anything else (a space, a leading '+') or is out of
// Number's range. Floating-point numbers can be "inf" and "nan".
template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}
inline std::optional<double> finite_number_in(std::string_view text) {
  const auto number = number_in<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

}  // namespace rehearse
