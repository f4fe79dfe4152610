// Finds the models that torchtitan ships, by their names in its configuration.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/model.hpp"

namespace rehearse {

enum class TorchtitanFamily { llama3, qwen3, deepseek_v3, gpt_oss };

struct TorchtitanModel {
  std::string_view name;  // [model] name
  std::string flavor;     // [model] flavor
  // Python code that registers a flavor that torchtitan does not ship; empty: it does.
  std::string registration;
  TorchtitanFamily family = TorchtitanFamily::llama3;
  bool pipelines() const {  // TrainSpec.pipelining_fn
    return family == TorchtitanFamily::llama3 || family == TorchtitanFamily::deepseek_v3;
  }
  bool shares_sequences() const {  // their attention is scaled_dot_product_attention, not FlexAttention
    return family == TorchtitanFamily::llama3 || family == TorchtitanFamily::qwen3;
  }
};

// Returns nullopt, with a sentence in `reason`, if torchtitan has no such model.
std::optional<TorchtitanModel> torchtitan_model(const Model& model, std::string& reason);

struct TorchtitanPreset {
  std::string_view name;  // "llama3-8b"; empty: there is none
  double layers = 0;
};
// Returns the preset of this program for [model] name and flavor.
TorchtitanPreset torchtitan_preset(std::string_view name, std::string_view flavor);

}  // namespace rehearse
