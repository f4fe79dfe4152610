// Checks what a scenario can change of a model's preset, file or config.json, key by key.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "models/model.hpp"
#include "tests/catch.hpp"
#include "tests/preset_keys.hpp"

using namespace rehearse;

namespace {

Model changed(const std::string& source, const std::vector<std::string>& assignments,
              const std::string& folder = "") {
  Document document = Document::parse_text("[model]\n" + source + "\n", "job.toml");
  for (const std::string& assignment : assignments) document.set("model." + assignment);
  Section section = document.root().section("model");
  return read_model(section, folder);
}

std::string refusal(const std::string& source, const std::vector<std::string>& assignments) {
  try {
    changed(source, assignments);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

// Returns the model's name, title, sample unit and sources, and sums over its layers.
std::string described(const Model& model) {
  std::string text = model.name + '\n' + model.title + '\n' + model.sample_unit + '\n';
  for (const std::string& source : model.sources) text += source + '\n';
  double parameters = 0, saved = 0, sent = 0, flops = 0, moved = 0;
  const std::vector<LayerCost> layers = layer_costs(model, {});
  for (const LayerCost& layer : layers) {
    parameters += layer.parameters;
    saved += layer.saved_bytes;
    sent += layer.output_bytes;
    for (const auto* pass : {&layer.forward, &layer.backward_input, &layer.backward_weight})
      for (const Kernel& kernel : *pass) {
        flops += kernel.flops();
        moved += kernel.bytes * kernel.count;
      }
  }
  for (const double sum : {static_cast<double>(layers.size()), parameters, saved, sent, flops, moved})
    text += std::to_string(sum) + ' ';
  return text;
}

}  // namespace

TEST_CASE("each key of each model preset may stand in the scenario, and its own value changes nothing") {
  int keys = 0;
  for (const std::string& name : preset_names("models")) {
    const std::string source = "preset = \"" + name + "\"";
    const std::string plain = described(changed(source, {}));
    CHECK(plain == described(model_preset(name)));
    for (const auto& [key, value] : test::preset_keys("models", name)) {
      CAPTURE(name, key, value);
      ++keys;
      CHECK(described(changed(source, {key + "=" + value})) == plain);
    }
  }
  CHECK(keys > 300);
}

TEST_CASE("a scenario changes the shape of the model that it names, and the title says so") {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("rehearse-models-overrides-" + std::to_string(getpid()));
  fs::create_directory(folder);
  std::ofstream(folder / "net.toml") << "title = \"Net\"\n[multi_layer_perceptron]\nwidths = [64, 32]\n";
  std::ofstream(folder / "stages.toml") << "[profiled]\nstages = 2\nforward_ms = 1\nbackward_input_ms = 1\n"
                                           "backward_weight_ms = 1\np2p_bytes = 8\n";
  std::ofstream(folder / "config.json") << R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2,
      "vocab_size": 100, "n_positions": 32})";
  const auto layers = [](const Model& m) {
    return static_cast<double>(std::get<Transformer>(m.shape).layers);
  };
  struct Case {
    const char* source;
    std::vector<std::string> assignments;
    const char* title;
    std::function<double(const Model&)> figure;
    double expected;
  };
  const std::vector<Case> cases = {
      {"preset = \"gpt3-175b\"", {"transformer.layers=12"}, "GPT-3 175B, but for layers", layers, 12},
      {"preset = \"gpt3-175b\"",
       {"transformer.heads=64", "transformer.hidden=8192"},
       "GPT-3 175B, but for heads, hidden",
       [](const Model& m) { return std::get<Transformer>(m.shape).hidden; },
       8192},
      {"preset = \"gpt3-175b\"",
       {"transformer.experts=8", "transformer.experts_per_token=2"},
       "GPT-3 175B, but for experts, experts_per_token",
       [](const Model& m) { return std::get<Transformer>(m.shape).experts; },
       8},
      {"preset = \"gpt3-175b\"", {"transformer.layers=12", "title=mine"}, "mine", layers, 12},
      {"preset = \"resnet50\"",
       {"convolutional.image_size=112"},
       "ResNet-50, but for image_size",
       [](const Model& m) { return std::get<ConvolutionalNet>(m.shape).image_size; },
       112},
      {"preset = \"mlp\"",
       {"multi_layer_perceptron.widths=[784, 10]"},
       "Multi-layer perceptron 784-300-100-10, but for widths",
       parameter_count,
       784 * 10 + 10},
      {"file = \"net.toml\"",
       {"multi_layer_perceptron.widths=[4, 2]"},
       "Net, but for widths",
       parameter_count,
       10},
      {"file = \"stages.toml\"",
       {"profiled.forward_ms=[3, 4]"},
       "Profiled model, 2 stages, but for forward_ms",
       [](const Model& m) { return std::get<ProfiledModel>(m.shape).forward_s[1]; },
       4e-3},
      {"huggingface = \"config.json\"",
       {"transformer.layers=7"},
       "Transformer, 2 layers of 64, but for layers",
       layers,
       7},
      {"huggingface = \"config.json\"",
       {"transformer.heads=4"},
       "Transformer, 2 layers of 64, but for heads",
       [](const Model& m) { return std::get<Transformer>(m.shape).kv_heads; },
       4},
  };
  for (const Case& c : cases) {
    CAPTURE(c.source, c.assignments);
    const Model model = changed(c.source, c.assignments, folder.string());
    CHECK(model.title == c.title);
    CHECK(c.figure(model) == Approx(c.expected));
    CHECK(model.sources.back().rfind("changed by the scenario: ", 0) == 0);
  }
  fs::remove_all(folder);
}

TEST_CASE("a bad change of a named model is refused at its own place, in the scenario's words") {
  struct Case {
    std::vector<std::string> assignments;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{"transformer.layer=3"},
       "--set model.transformer.layer=3: unknown key \"layer\" in [model.transformer]; did you mean "
       "\"layers\"?"},
      {{"transformer.layers=0"},
       "--set model.transformer.layers=0: model.transformer.layers is 0; allowed: an integer from 1 to "
       "10000"},
      {{"transformer.heads=7"},
       "--set model.transformer.heads=7: model.transformer.heads is 7; allowed: a divisor of hidden, 12288"},
      {{"transformer=3"},
       "--set model.transformer=3: model.transformer is 3; allowed: a table [model.transformer]"},
      {{"multi_layer_perceptron.widths=[3, 4]"},
       "--set model.multi_layer_perceptron.widths=[3, 4]: model.multi_layer_perceptron is given; allowed: "
       "[model.transformer], the shape of gpt3-175b"},
      {{"transformer.experts=8"},
       "--set model.transformer.experts=8: model.transformer.experts_per_token is missing with experts = "
       "8; "
       "allowed: an integer from 1 to 8"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.assignments);
    CHECK(refusal("preset = \"gpt3-175b\"", c.assignments) == c.message);
  }
  CHECK(refusal("[model.profiled]\nstages = 2\nforward_ms = 1\nbackward_weight_ms = 1\np2p_bytes = 8", {}) ==
        "job.toml:2:1: model.profiled.backward_input_ms is missing; allowed: a number above 0");
}
