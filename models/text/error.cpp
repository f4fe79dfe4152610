#include "models/text/error.hpp"

#include <fmt/format.h>

#include "models/text/printable.hpp"

namespace rehearse {
namespace {

std::string at(const Place& place) {
  if (place.file.empty()) return "";
  const std::string file = printable(place.file);
  if (place.line <= 0) return file + ": ";
  return fmt::format("{}:{}:{}: ", file, place.line, place.column);
}

}  // namespace

InputError::InputError(Place place, const std::string& message)
    : std::runtime_error(at(place) + message), place_(std::move(place)) {}

}  // namespace rehearse
