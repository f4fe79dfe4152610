// Any bytes as a config.json; then the costs of what was accepted are asked for.
#include <cmath>
#include <cstdint>
#include <string>

#include "models/kernels.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  try {
    Model model;
    model.shape = parse_huggingface(std::string(reinterpret_cast<const char*>(data), size), "config.json");
    if (!(parameter_count(model) > 0) || !std::isfinite(flops_per_sample(model, 0))) __builtin_trap();
  } catch (const InputError&) {
  }
  return 0;
}
