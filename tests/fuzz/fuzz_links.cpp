// Reads arbitrary bytes as a link profile.
#include <cstdint>
#include <string_view>

#include "simulator/costs/link_profile.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  try {
    auto document = Document::parse_text({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
    Section root = document.root();
    const LinkProfile profile = read_link_profile(root);
    for (const LinkCurve& curve : profile.curves)
      for (const double bytes : {0.0, 1.0, 1e6, 1e18})
        if (!(curve.range_of(bytes).from_bytes <= bytes)) __builtin_trap();
  } catch (const InputError&) {
  }
  return 0;
}
