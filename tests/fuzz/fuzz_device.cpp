// Reads arbitrary bytes as a device file.
#include <cstdint>
#include <string_view>

#include "topologies/device.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  try {
    auto document = Document::parse_text({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
    Section root = document.root();
    const Device device = read_device(root);
    const double fp32 = device.peak_flops[static_cast<std::size_t>(Precision::fp32)].value;
    if (!(fp32 > 0) || !(device.memory_bandwidth.value > 0) || !(device.memory_bytes.value > 0))
      __builtin_trap();
  } catch (const InputError&) {
  }
  return 0;
}
