// Reads what was measured of a device's memory in a table of steps.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "models/text/error.hpp"

namespace rehearse {

inline constexpr std::array<std::string_view, 5> kMemoryColumns = {
    "measured_peak_bytes", "measured_static_bytes", "measured_reserved_bytes", "measured_out_of_memory",
    "measured_stage"};

// What was measured of a device's memory; 0: not measured.
struct MeasuredMemory {
  double peak_bytes = 0;      // most that tensors took at once
  double static_bytes = 0;    // of tensors behind the last backward pass: weights, gradients, optimizer state
  double reserved_bytes = 0;  // most that the framework's allocator held
  std::optional<bool> out_of_memory;
  // The pipeline stage whose device was measured.
  enum class Of { fullest, first, last } stage = Of::fullest;
  bool any() const {
    return peak_bytes > 0 || static_bytes > 0 || reserved_bytes > 0 || out_of_memory.has_value();
  }
};

// Parses the memory columns of a row, of which `cell_of` returns the cells. Throws InputError, which names
// `place`, for a cell that is not allowed.
MeasuredMemory measured_memory(const std::function<std::string(std::string_view)>& cell_of,
                               const Place& place);

}  // namespace rehearse
