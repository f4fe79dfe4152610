// Reads arbitrary bytes as a table of measurements.
#include <cstdint>
#include <string>

#include "models/text/error.hpp"
#include "simulator/commands/validate/table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  try {
    const MeasurementTable table =
        parse_measurements(std::string(reinterpret_cast<const char*>(data), size), "fuzz.csv");
    if (table.rows.empty()) __builtin_trap();
    for (const PublishedRow& row : table.rows) {
      const int measured =
          (row.measured_step_s > 0) + (row.measured_samples_per_s > 0) + (row.measured_efficiency > 0);
      if (measured > 1 || (measured == 0 && row.scaling.empty() && !row.memory.any())) __builtin_trap();
    }
  } catch (const InputError&) {
  }
  return 0;
}
