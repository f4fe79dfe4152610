// Reads arbitrary bytes as a trace file for the window.
#include <string_view>

#include "gui/models/trace/trace_file.hpp"
#include "models/text/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  try {
    const rehearse::gui::Timeline timeline =
        rehearse::gui::parse_timeline({reinterpret_cast<const char*>(data), size}, "trace.json");
    for (std::size_t row = 0; row < timeline.rows.size(); ++row) {
      if (timeline.rows[row].last > timeline.spans.size()) __builtin_trap();
    }
  } catch (const rehearse::InputError&) {
  }
  return 0;
}
