#include "models/base/error.hpp"

#include <fmt/format.h>

namespace rehearse {
namespace {

std::string at(const Place& place) {
  if (place.file.empty()) return "";
  if (place.line <= 0) return place.file + ": ";
  return fmt::format("{}:{}:{}: ", place.file, place.line, place.column);
}

}  // namespace

InputError::InputError(Place place, const std::string& message)
    : std::runtime_error(at(place) + message), place_(std::move(place)) {}

}  // namespace rehearse
