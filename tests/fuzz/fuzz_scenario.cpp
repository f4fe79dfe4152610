// Reads arbitrary bytes as a scenario file.
#include <cstdint>
#include <string_view>

#include "simulator/scenario/reading/read_scenario.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    rehearse::read_scenario_text({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
  } catch (const rehearse::InputError&) {
  }
  return 0;
}
