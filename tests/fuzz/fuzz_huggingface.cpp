// Reads arbitrary bytes as a config.json, and computes the model's costs if they are accepted.
#include <cmath>
#include <cstdint>
#include <string>

#include "models/kernels.hpp"
#include "models/text/toml_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  try {
    const Model model =
        parse_huggingface(std::string(reinterpret_cast<const char*>(data), size), "config.json");
    if (!(parameter_count(model) > 0) || !std::isfinite(flops_per_sample(model, 0))) __builtin_trap();
    // The table of keys for an accepted model must be accepted, too.
    TomlValue root;
    root.data = TomlValue::Table{};
    TomlEntry& entry = root.get<TomlValue::Table>()->emplace_back();
    entry.key = "transformer";
    entry.value = transformer_table(std::get<Transformer>(model.shape));
    try {
      const Model again = parse_model_file(Document::parse_text(toml_text(root), "again.toml"), "again.toml");
      if (parameter_count(again) != parameter_count(model)) __builtin_trap();
    } catch (const InputError&) {
      __builtin_trap();
    }
  } catch (const InputError&) {
  }
  return 0;
}
