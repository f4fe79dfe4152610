// Tests which framework preset a scenario gets that names none.
#include "models/text/document.hpp"
#include "models/text/toml_text.hpp"
#include "simulator/scenario/reading/choose_framework.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

std::string job(const std::string& model, const std::string& cluster, const std::string& strategy,
                const std::string& training = "", const std::string& rest = "") {
  return "[model]\npreset = \"" + model + "\"\n[training]\nglobal_batch = 64\n" + training +
         "[cluster]\npreset = \"" + cluster + "\"\n[strategy]\npreset = \"" + strategy + "\"\n" + rest;
}

std::string framework_of(const std::string& text) {
  return read_scenario_text(text, "job.toml").framework.name;
}

}  // namespace

TEST_CASE("the strategy's preset, precision, device and model choose the framework where none is named") {
  struct Case {
    const char *model, *cluster, *strategy, *precision, *framework;
  };
  for (const Case& c :
       std::vector<Case>{{"llama3-8b", "dgx-h100", "torchtitan", "bf16", "torchtitan-2024"},
                         {"llama3-8b", "dgx-h100", "torchtitan", "fp8", "torchtitan-2024"},
                         {"llama3-8b", "dgx-h100", "megatron-core", "bf16", "megatron-bridge-2025"},
                         {"qwen3-30b-a3b", "dgx-h100", "megatron-core", "bf16", "megatron-bridge-2025-11"},
                         {"gpt3-175b", "dgx-a100", "megatron-ddp", "fp16", "megatron-2022"},
                         {"gpt3-175b", "dgx-a100", "deepspeed-zero-3", "fp16", "deepspeed-2021"},
                         {"llama3-8b", "dgx-b200", "megatron-core", "bf16", "megatron-bridge-2025"},
                         // No preset is of such jobs.
                         {"llama3-8b", "dgx-h100", "pytorch-ddp", "bf16", ""},
                         {"qwen3-30b-a3b", "dgx-h100", "torchtitan", "bf16", ""},
                         {"gpt3-175b", "dgx-a100", "deepspeed-zero-3", "bf16", ""},
                         {"resnet50", "dgx-h100", "torchtitan", "bf16", ""},
                         {"resnet50", "cpu-cluster", "pytorch-ddp", "fp32", ""}}) {
    CAPTURE(c.model, c.cluster, c.strategy, c.precision);
    const std::string precision = std::string("precision = \"") + c.precision + "\"\n";
    CHECK(framework_of(job(c.model, c.cluster, c.strategy, precision)) == c.framework);
  }
}

TEST_CASE("a framework is taken by default only where the scenario leaves it open") {
  const std::string text = job("llama3-8b", "dgx-h100", "torchtitan");
  CHECK(framework_of(text) == "torchtitan-2024");
  CHECK(framework_of(job("llama3-8b", "dgx-h100", "torchtitan", "framework = \"none\"\n")).empty());
  CHECK(framework_of(job("llama3-8b", "dgx-h100", "torchtitan", "framework = \"torchtitan-2024-eager\"\n")) ==
        "torchtitan-2024-eager");
  CHECK(framework_of(job("llama3-8b", "dgx-h100", "torchtitan", "", "[framework]\ntitle = \"ours\"\n")) ==
        "ours");
  CHECK(framework_of(job("llama3-8b", "dgx-h100", "torchtitan", "", "[simulation]\nprotocol = \"ideal\"\n"))
            .empty());
  CHECK(read_scenario_text(text, "job.toml", {"training.framework=none"}).framework.name.empty());
  // What is written out gives the same framework wherever it is read.
  const Scenario taken = read_scenario_text(text, "job.toml");
  CHECK(framework_of(taken.text) == "torchtitan-2024");
  // The scenario's own settings do not name it.
  for (const auto& [key, value] : taken.settings) CHECK(key != "training.framework");
}

TEST_CASE("every framework preset that fits jobs does so with its own keys") {
  int fitting = 0;
  for (const std::string& name : preset_names("simulator/frameworks")) {
    CAPTURE(name);
    Document document = Document::parse_file(preset_path("simulator/frameworks", name));
    Section fits = document.root().section("fits");
    if (!fits.present()) continue;
    ++fitting;
    for (const std::string& strategy : fits.texts("strategies"))
      CHECK_FALSE(preset_path("simulator/strategies", strategy).empty());
    const std::vector<std::int64_t> devices = fits.integers("compute_capability", 1, 1000);
    REQUIRE(devices.size() == 2);
    CHECK(devices.front() <= devices.back());
  }
  CHECK(fitting >= 8);
}
