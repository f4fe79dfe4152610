#include "simulator/commands/validate/measured_memory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "models/text/toml_value.hpp"
#include "simulator/commands/validate/csv_records.hpp"

namespace rehearse {

MeasuredMemory measured_memory(const std::function<std::string(std::string_view)>& cell_of,
                               const Place& place) {
  MeasuredMemory memory;
  const auto number = [&](std::string_view name) {
    const std::string cell = cell_of(name);
    return cell.empty() ? 0.0 : positive_number(cell, name, place);
  };
  memory.peak_bytes = number("measured_peak_bytes");
  memory.static_bytes = number("measured_static_bytes");
  memory.reserved_bytes = number("measured_reserved_bytes");
  const auto chosen = [&](std::string_view name, const std::vector<std::string>& allowed) {
    const std::string cell = cell_of(name);
    if (cell.empty()) return -1;
    const auto found = std::find(allowed.begin(), allowed.end(), cell);
    if (found == allowed.end())
      throw InputError(place,
                       fmt::format("{} is {}; allowed: {}", name, in_quotes(cell), fmt::join(allowed, ", ")));
    return static_cast<int>(found - allowed.begin());
  };
  if (const int out = chosen("measured_out_of_memory", {"false", "true"}); out >= 0)
    memory.out_of_memory = out == 1;
  if (const int stage = chosen("measured_stage", {"fullest", "first", "last"}); stage >= 0)
    memory.stage = static_cast<MeasuredMemory::Of>(stage);
  return memory;
}

}  // namespace rehearse
