// Reads arbitrary bytes as a sweep file and as the value of --vary, and computes points if they are accepted.
#include <cstdint>
#include <string>
#include <string_view>

#include "simulator/commands/sweep/sweep_points.hpp"

namespace {

using namespace rehearse;

void ask(const Sweep& sweep) {
  const std::int64_t points = sweep.points();
  if (points < 1 || points > kMostSweepPoints || sweep.hash().size() != 16) __builtin_trap();
  for (const std::int64_t point : {std::int64_t{1}, (points + 1) / 2, points}) {
    const Overrides overrides = sweep.overrides_of(point);
    if (overrides.set != sweep.overrides || overrides.varied.size() != sweep.keys().size()) __builtin_trap();
    // Accepted values can be set.
    for (const SweepValue& value : sweep.values(point)) parse_toml_value(value.toml, {});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    is_sweep_file(text);
    ask(parse_sweep_file(text, "fuzz.toml"));
  } catch (const InputError&) {
  }
  Sweep sweep;
  try {
    sweep.axes = {parse_vary(text)};
    check(sweep);
  } catch (const InputError&) {
    return 0;
  }
  ask(sweep);
  return 0;
}
