#include "simulator/commands/collective/collective_sizes.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "models/text/error.hpp"
#include "models/text/number_in.hpp"
#include "models/text/toml_value.hpp"
#include "simulator/commands/predicting/collective_time.hpp"

namespace rehearse {
namespace {

constexpr const char* kAllowed =
    "sizes from 4 to 1024G such as 8, 64K, 1M and 8G, and ranges such as 8..8G*2 and 1M..16M+1M, with commas "
    "between them";

[[noreturn]] void refuse(std::string_view found, std::string_view why) {
  throw InputError({"--bytes"}, fmt::format("{} {}; allowed: {}", in_quotes(found), why, kAllowed));
}

// Parses a whole number, optionally followed by K, M or G (2^10, 2^20, 2^30).
std::optional<std::int64_t> number_of(std::string_view text) {
  int shift = 0;
  if (!text.empty()) {
    constexpr std::string_view kSuffixes = "KMG", kSmall = "kmg";
    std::size_t suffix = kSuffixes.find(text.back());
    if (suffix == std::string_view::npos) suffix = kSmall.find(text.back());
    if (suffix != std::string_view::npos) {
      shift = 10 * (static_cast<int>(suffix) + 1);
      text.remove_suffix(1);
    }
  }
  const auto number = number_in<std::int64_t>(text);
  if (!number || *number < 0 || *number > INT64_MAX >> shift) return std::nullopt;
  return *number << shift;
}

std::int64_t size_of(std::string_view text) {
  const std::optional<std::int64_t> size = number_of(text);
  if (!size) refuse(text, "is not a size");
  if (static_cast<double>(*size) < kLeastCollectiveBytes || static_cast<double>(*size) > kMostCollectiveBytes)
    refuse(text, "is out of range");
  return *size;
}

void add_range(std::string_view range, std::size_t dots, std::vector<double>& sizes) {
  const std::int64_t first = size_of(range.substr(0, dots));
  const std::string_view rest = range.substr(dots + 2);
  const std::size_t sign = rest.find_first_of("+*");
  const std::int64_t last = size_of(rest.substr(0, sign));
  const bool grows = sign == std::string_view::npos || rest[sign] == '*';
  std::int64_t step = 2;
  if (sign != std::string_view::npos) {
    const std::optional<std::int64_t> given = number_of(rest.substr(sign + 1));
    if (!given || *given < (grows ? 2 : 1))
      refuse(range, grows ? "needs a factor of at least 2" : "needs a step of at least 1");
    step = *given;
  }
  if (last < first) refuse(range, "ends before it begins");
  for (std::int64_t size = first;;) {
    if (sizes.size() == kMostCollectiveSizes)
      refuse(range, fmt::format("gives more than {} sizes", kMostCollectiveSizes));
    sizes.push_back(static_cast<double>(size));
    if (grows ? size > last / step : step > last - size) return;
    size = grows ? size * step : size + step;
  }
}

}  // namespace

std::vector<double> parse_collective_sizes(std::string_view text) {
  std::vector<double> sizes;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const std::size_t dots = part.find("..");
    if (dots != std::string_view::npos) {
      add_range(part, dots, sizes);
    } else {
      if (sizes.size() == kMostCollectiveSizes)
        refuse(part, fmt::format("gives more than {} sizes", kMostCollectiveSizes));
      sizes.push_back(static_cast<double>(size_of(part)));
    }
    at = end + 1;
  }
  return sizes;
}

}  // namespace rehearse
