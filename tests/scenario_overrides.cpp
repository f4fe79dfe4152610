// Checks overrides of keys of a scenario's presets and files, and the text that preserves them.
#include <filesystem>
#include <functional>
#include <set>

#include "models/text/asked_keys.hpp"
#include "models/text/toml_table.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/preset_keys.hpp"

using namespace rehearse;
namespace fs = std::filesystem;

namespace {

const std::string kGpt3 =
    "[model]\npreset = \"gpt3-175b\"\n[training]\nglobal_batch = 64\n[cluster]\npreset = \"dgx-a100\"\nnodes "
    "= "
    "4\n";
const std::string kResnet =
    "[model]\npreset = \"resnet50\"\n[training]\nglobal_batch = 64\nprecision = \"fp32\"\n[cluster]\npreset "
    "= "
    "\"dgx1-v100\"\nnodes = 4\n";

std::string override_refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    read_scenario_text(text, "job.toml", overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

// Removes each key of `table`, of the tables below it and of those in its arrays, calls `check` with the
// key's path, and restores the key.
void without_each_key(TomlValue& table, const std::string& path,
                      const std::function<void(const std::string&)>& check) {
  auto& entries = *table.get<TomlValue::Table>();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string key = path + "." + entries[i].key;
    if (entries[i].value.get<TomlValue::Table>()) without_each_key(entries[i].value, key, check);
    if (auto* array = entries[i].value.get<TomlValue::Array>())
      for (TomlValue& item : *array)
        if (item.get<TomlValue::Table>()) without_each_key(item, key + "[]", check);
    const TomlEntry kept = entries[i];
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(i));
    check(key);
    entries.insert(entries.begin() + static_cast<std::ptrdiff_t>(i), kept);
  }
}

}  // namespace

TEST_CASE("overrides of a preset's keys reach the scenario, and its text keeps them") {
  struct Case {
    std::string text;
    std::vector<std::string> overrides;
    const char *model, *cluster;
  };
  const std::vector<Case> cases = {
      {kGpt3, {"model.transformer.layers=12"}, "GPT-3 175B, but for layers", "4 x dgx-a100 (32 GPUs)"},
      {kGpt3,
       {"cluster.node.device=h100", "cluster.node.nvlink_gb_per_s=450"},
       "GPT-3 175B",
       "4 x dgx-a100, but for device, nvlink_gb_per_s (32 GPUs)"},
      {kGpt3,
       {"cluster.node.device.memory_gib.value=40", "cluster.nic_gbps=100"},
       "GPT-3 175B",
       "4 x dgx-a100, but for device, nic_gbps (32 GPUs)"},
      // Overrides of elements of arrays in the preset's file.
      {kResnet,
       {"model.convolutional.stage[0].channels=32"},
       "ResNet-50, but for stage",
       "4 x dgx1-v100 (32 GPUs)"},
      {kResnet,
       {"cluster.node.nvlink[3].count=1", "cluster.node.ring[2].order[0]=0"},
       "ResNet-50",
       "4 x dgx1-v100, but for nvlink (32 GPUs)"},
      // The preset named last takes effect, wherever it is among the overrides.
      {kGpt3,
       {"model.convolutional.stage[0].channels=32", "model.preset=resnet50"},
       "ResNet-50, but for stage",
       "4 x dgx-a100 (32 GPUs)"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.overrides);
    const Scenario scenario = read_scenario_text(c.text, "job.toml", c.overrides);
    CHECK(scenario.model.title == c.model);
    CHECK(scenario.cluster->title == c.cluster);
    const Scenario again = read_scenario_text(scenario.text, "elsewhere/job.toml");
    CHECK(again.text == scenario.text);
    CHECK(again.model.title == c.model);
    CHECK(again.cluster->title == c.cluster);
    CHECK(again.cluster->node().device.title == scenario.cluster->node().device.title);
    CHECK(parameter_count(again.model) == parameter_count(scenario.model));
  }
  CHECK(override_refusal(kResnet, {"model.convolutional.stage[99].channels=32"}) ==
        "--set model.convolutional.stage[99].channels=32: model.convolutional.stage has 8 elements; allowed: "
        "an "
        "index from 0 to 8");
}

TEST_CASE("a scenario that changes its files keeps the changes in one text") {
  const test::Scratch scratch;
  fs::create_directory(scratch.path("parts"));
  scratch.write(
      "parts/net.toml",
      "title = \"Net\"\nsources = [\"a sketch\"]\n[multi_layer_perceptron]\nwidths = [64, 64, 64]\n");
  scratch.write("parts/chip.toml", R"(memory_gib = {value = 16, basis = "measured", source = "here"}
memory_gb_per_s = {value = 100, basis = "measured", source = "here"}
peak_tflops = {fp32 = {value = 1.5, basis = "measured", source = "here"}}
)");
  scratch.write("parts/lab.toml", R"(nodes = 2
sources = ["a cable"]
basis = "measured"
[node]
device_file = "chip.toml"
devices = 1
[fabric]
kind = "links"
[[link]]
a = "node0"
b = "node1"
gbps = 8
)");
  scratch.write(
      "parts/config.json",
      R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 100, "n_positions": 32})");
  const std::string cluster = "[cluster]\nfile = \"parts/lab.toml\"\n",
                    training = "[training]\nglobal_batch = 8\n";
  struct Case {
    std::string model;
    std::vector<std::string> overrides;
    const char *title, *cluster;
    Basis network, memory;
  };
  const std::vector<Case> cases = {
      {"file = \"parts/net.toml\"", {}, "Net", "2 x lab (2 devices)", Basis::measured, Basis::measured},
      {"file = \"parts/net.toml\"",
       {"model.multi_layer_perceptron.widths=[64, 64]", "cluster.node.cpu_cores=4"},
       "Net, but for widths",
       "2 x lab, but for cpu_cores (2 devices)",
       Basis::measured,
       Basis::measured},
      {"huggingface = \"parts/config.json\"",
       {"model.transformer.layers=3", "cluster.link[0].gbps=16", "cluster.node.device.memory_gib.value=32"},
       "Transformer, 2 layers of 64, but for layers",
       "2 x lab, but for device, link (2 devices)",
       Basis::guess,
       Basis::guess},
      {"huggingface = \"parts/config.json\"",
       {"cluster.fabric.kind=switch", "cluster.node.nic_gbps=1", "cluster.node.device=cpu-core"},
       "Transformer, 2 layers of 64",
       "2 x lab, but for device, nic_gbps, kind (2 devices)",
       Basis::guess,
       Basis::guess},
  };
  for (const Case& c : cases) {
    CAPTURE(c.model, c.overrides);
    const std::string job = scratch.write("job.toml", "[model]\n" + c.model + "\n" + training + cluster);
    const Scenario scenario = read_scenario_file(job, c.overrides);
    const Scenario again = read_scenario_text(scenario.text, "elsewhere/job.toml");
    CHECK(again.text == scenario.text);
    CHECK(scenario.text.find("parts/") == std::string::npos);
    for (const Scenario* one : {&scenario, &again}) {
      CHECK(one->model.title == c.title);
      CHECK(one->cluster->title == c.cluster);
      CHECK(one->cluster->network_basis == c.network);
      CHECK(one->cluster->node().device.memory_bytes.basis == c.memory);
    }
    CHECK(again.cluster->sources == scenario.cluster->sources);
    CHECK(again.cluster->links() == scenario.cluster->links());
    CHECK(again.cluster->node().device.name == scenario.cluster->node().device.name);
    CHECK(again.cluster->node().device.title == scenario.cluster->node().device.title);
    CHECK(again.cluster->node().device.memory_bytes.source ==
          scenario.cluster->node().device.memory_bytes.source);
    CHECK(again.model.name == scenario.model.name);
    CHECK(again.model.sources.size() == scenario.model.sources.size());
    CHECK(parameter_count(again.model) == parameter_count(scenario.model));
  }
}

TEST_CASE("readers ask for the keys of a named model and cluster as the scenario's own") {
  const AskedKeys asked;
  read_scenario_text(kGpt3, "job.toml");
  std::set<std::string> paths;
  for (const AskedKey& key : asked.keys()) paths.insert(key.path);
  for (const auto& [key, value] : test::preset_keys("models", "gpt3-175b"))
    CHECK(paths.count("model." + key) == 1);
  for (const auto& [key, value] : test::preset_keys("topologies", "dgx-a100"))
    CHECK(paths.count("cluster." + key) == 1);
}

TEST_CASE("a missing key is never blamed on another one", "[release]") {
  const auto check_tree = [](TomlValue& root, const std::string& from) {
    without_each_key(root, from, [&](const std::string& removed) {
      CAPTURE(removed);
      try {
        read_scenario_text(toml_text(root), "job.toml");
      } catch (const UnknownKeyError& error) {
        FAIL_CHECK(error.what());
      } catch (const InputError&) {  // it names the missing key
      }
    });
  };
  const auto read = [](const std::string& path) { return Document::parse_file(path).tree(); };
  TomlValue scenario = Document::parse_text(kGpt3, "job.toml").tree();
  for (const std::string name : {"bert-large", "mixtral-8x7b", "mlp", "resnet50"}) {
    TomlValue root = scenario;
    put(root, "model", read(preset_path("models", name)));
    check_tree(root, name);
  }
  for (const std::string name : {"dgx1-p100", "ethernet", "tpu-v4"}) {
    TomlValue root = scenario;
    put(root, "cluster", read(preset_path("topologies", name)));
    check_tree(root, name);
  }
  TomlValue root = scenario;
  put(*find(root, "cluster"), "node", toml_table());
  put(*find_table(*find(root, "cluster"), "node"), "device", read(preset_path("topologies/devices", "h100")));
  erase_key(*find_table(*find(root, "cluster"), "node"), "preset");
  check_tree(root, "h100");
  root = scenario;
  put(root, "simulation", toml_table());
  put(*find(root, "simulation"), "protocol", toml_value(std::string("measured")));
  put(*find(root, "simulation"), "link_profile",
      read(std::string(REHEARSE_TESTS_DIR) + "/measured-links.toml"));
  check_tree(root, "measured-links");
  root = Document::parse_text(test::kMeasuredStages, "job.toml").tree();
  check_tree(root, "stages");
  for (const auto& entry :
       fs::directory_iterator(fs::path(REHEARSE_TESTS_DIR).parent_path() / "simulator/scenarios")) {
    root = read(entry.path().string());
    check_tree(root, entry.path().stem().string());
  }
}

TEST_CASE("messages list only what is available") {
  const std::string strategy = kGpt3 + "[strategy]\n";
  const std::string unknown = override_refusal(strategy + "quantisation = 8\n");
  CHECK(unknown.rfind("job.toml:9:1: unknown key \"quantisation\" in [strategy]; allowed: ", 0) == 0);
  CHECK(override_refusal(strategy + "schedule = \"zigzag\"\n") ==
        "job.toml:9:12: strategy.schedule is \"zigzag\"; allowed: \"gpipe\", \"1f1b\", \"interleaved\", "
        "\"breadth-first\", \"zb-h1\", \"zb-h2\", \"zb-v\", \"dualpipe-v\", \"dualpipe\"");
  CHECK(override_refusal(strategy + "schedule = \"interleaved\"\n") ==
        "job.toml:9:12: strategy.virtual_stages is missing with schedule = \"interleaved\"; allowed: an "
        "integer from 2 to 10000");
  CHECK(override_refusal(kGpt3 + "[simulation]\nprotocol = \"measured\"\n") ==
        "job.toml:9:12: simulation.link_profile is missing with protocol = \"measured\"; allowed: a file "
        "with "
        "measured links");
}
