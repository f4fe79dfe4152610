// Reads arbitrary bytes as a model file, and computes the model's costs if they are accepted.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "models/kernels.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  try {
    const Model model = parse_model_file(
        Document::parse_text({reinterpret_cast<const char*>(data), size}, "fuzz.toml"), "fuzz.toml");
    if (!(parameter_count(model) >= 0) || !std::isfinite(parameter_count(model))) __builtin_trap();
    if (!(active_parameter_count(model) <= parameter_count(model) * (1 + 1e-9))) __builtin_trap();
    if (!std::isfinite(flops_per_sample(model, 0))) __builtin_trap();
  } catch (const InputError&) {
  }
  return 0;
}
