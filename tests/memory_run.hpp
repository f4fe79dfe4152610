// Reads scenarios from text and predicts the memory of their devices.
#pragma once

#include <fmt/format.h>

#include <string>

#include "simulator/commands/predicting/predict.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/layout/stages.hpp"
#include "simulator/trace/memory_timeline.hpp"
#include "tests/catch.hpp"
#include "tests/sanitized.hpp"

namespace rehearse::testing {

// A GPT with the shape that Megatron-LM uses: learned positions, tied embeddings, layer norms and dropout.
struct GptShape {
  int layers = 8;
  double hidden = 1024, heads = 16, sequence = 512, vocabulary = 32000;
};

inline std::string gpt_text(const GptShape& gpt) {
  return fmt::format(
      "[model.transformer]\nlayers = {}\nhidden = {}\nheads = {}\nvocabulary = {}\nsequence_length = {}\n"
      "positions = {}\n",
      gpt.layers, gpt.hidden, gpt.heads, gpt.vocabulary, gpt.sequence, gpt.sequence);
}

// Reads a scenario from the keys of [training], [strategy] and [cluster], one key a line.
inline Scenario scenario_of(const std::string& model, const std::string& training,
                            const std::string& strategy, const std::string& cluster) {
  return read_scenario_text(model + "[training]\n" + training + "[cluster]\n" + cluster + "[strategy]\n" +
                                strategy + "[simulation]\nprotocol = \"ideal\"\n",
                            "memory.toml");
}

inline Prediction predicted(const Scenario& scenario) {
  return predict(scenario, Where::child);
}

}  // namespace rehearse::testing
