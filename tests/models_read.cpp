// Checks reading [model]: all forms of a model, and what is refused where.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "models/model.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

Model read(const std::string& text, const std::string& folder = ".") {
  Document document = Document::parse_text(text, "job.toml");
  Section section = document.root().section("model");
  return read_model(section, folder);
}

std::string error_of(const std::string& text, const std::string& folder = ".") {
  try {
    read(text, folder);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// A temporary folder that is removed when the test ends.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("rehearse-models-" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path / name) << text; }
};

const std::string kGpt = R"(
  layers = 2
  hidden = 64
  heads = 4
  vocabulary = 1000
  sequence_length = 128
)";

}  // namespace

TEST_CASE("a preset is read by name") {
  const Model model = read("[model]\npreset = \"gpt3-175b\"");
  CHECK(model.name == "gpt3-175b");
  CHECK(model.title == "GPT-3 175B");
  CHECK(model.sample_unit == "sequences");
  CHECK(tokens_per_sample(model, 0) == 2048);
  CHECK(tokens_per_sample(model, 1024) == 1024);
  CHECK(sample_bytes(model, 1024, Precision::bf16) == 1024 * 8);  // token ids in int64
}

TEST_CASE("a transformer of one's own") {
  const Model model = read("[model]\ntitle = \"Mine\"\n[model.transformer]" + kGpt);
  CHECK(model.title == "Mine");
  CHECK(read("[model.transformer]" + kGpt).title == "Transformer, 2 layers of 64");
  const auto& t = std::get<Transformer>(model.shape);
  CHECK(t.feed_forward == 256);  // 4 x hidden
  CHECK(t.positions == 128);     // the sequence length
  CHECK(t.causal);
  CHECK(t.final_norm);
  CHECK(!t.masked_lm_head);
  CHECK(t.tied_embeddings);
  const Model bert = read("[model.transformer]\ncausal = false" + kGpt);
  CHECK(std::get<Transformer>(bert.shape).masked_lm_head);
  CHECK(!std::get<Transformer>(bert.shape).final_norm);
}

TEST_CASE("a file is found beside the scenario and holds the same tables as a preset") {
  const Folder folder;
  folder.write("net.toml",
               "title = \"Net\"\nsources = [\"me\"]\n[multi_layer_perceptron]\nwidths = [4, 3, 2]\n");
  folder.write("broken.toml", "[multi_layer_perceptron]\nwidths = [4]\n");
  folder.write("misspelt.toml", "titel = \"Net\"\n[multi_layer_perceptron]\nwidths = [4, 3]\n");
  const Model model = read("[model]\nfile = \"net.toml\"", folder.path.string());
  CHECK(model.name == "net");
  CHECK(model.title == "Net");
  CHECK(model.sources == std::vector<std::string>{"me"});
  CHECK(model.sample_unit == "samples");
  CHECK(parameter_count(model) == 4 * 3 + 3 + 3 * 2 + 2);

  const std::string broken = error_of("[model]\nfile = \"broken.toml\"", folder.path.string());
  CHECK(broken == (folder.path / "broken.toml").string() +
                      ":2:10: multi_layer_perceptron.widths is 1 of them; allowed: two or more: input, "
                      "hidden..., output");
  const std::string misspelt = error_of("[model]\nfile = \"misspelt.toml\"", folder.path.string());
  CHECK(misspelt.find("misspelt.toml:1:1: ") != std::string::npos);
  CHECK(misspelt.find("did you mean \"title\"") != std::string::npos);
  CHECK(error_of("[model]\nfile = \"none.toml\"", folder.path.string()).find("none.toml") !=
        std::string::npos);
}

TEST_CASE("measured stages may differ from each other") {
  const std::string text = R"(
    [model.profiled]
    stages = 4
    forward_ms = 1
    backward_input_ms = 2
    backward_weight_ms = 1
    p2p_bytes = 100
  )";
  CHECK(std::get<ProfiledModel>(read(text).shape).stage_deviation == 0);
  CHECK(std::get<ProfiledModel>(read(text + "stage_deviation = 0.05\n").shape).stage_deviation == 0.05);
}

TEST_CASE("measured layers are cut by the pipeline, and their times follow the micro-batch") {
  const Model model = read(R"(
    [model.profiled]
    layers = 3
    names = ["in", "middle", "out"]
    micro_batch = 8
    forward_ms = [1, 0, 3]
    backward_input_ms = [2, 4, 6]
    backward_weight_ms = 0
    p2p_bytes = [100, 200, 0]
    parameters = 10
    forward_kernels = [5, 6, 7]
    backward_kernels = 9
    optimizer_ms = 0.5
    optimizer_kernels = 2
  )");
  const auto& profiled = std::get<ProfiledModel>(model.shape);
  CHECK(profiled.has_layers);
  CHECK(profiled.optimizer_s == Approx(0.5e-3));
  CHECK(profiled.optimizer_kernels == 2);
  PassShape pass;
  pass.micro_batch = 4;  // half of the measured micro-batch
  const auto layers = layer_costs(model, pass);
  REQUIRE(layers.size() == 3);
  CHECK(layers[0].name == "in");
  CHECK(layers[0].forward[0].seconds == Approx(0.5e-3));
  CHECK(layers[1].forward[0].seconds == 0);
  CHECK(layers[2].backward_input[0].seconds == Approx(3e-3));
  CHECK(layers[1].output_bytes == Approx(100));
  // The number of launches does not depend on the times.
  CHECK(layers[2].forward[0].launches == 7);
  CHECK(layers[2].backward_input[0].launches == 9);
  CHECK(layers[2].backward_weight[0].launches == 0);
}

TEST_CASE("measured stages keep their times apart") {
  const Model model = read(R"(
    [model.profiled]
    stages = 3
    forward_ms = [1.0, 2.0, 3.0]
    backward_input_ms = 4
    backward_weight_ms = 0.5
    p2p_bytes = 1000
    parameters = 100
  )");
  const auto layers = layer_costs(model, {});
  REQUIRE(layers.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    REQUIRE(layers[i].forward.size() == 1);
    CHECK(layers[i].forward[0].kind == Kernel::Kind::fixed);
    CHECK(layers[i].forward[0].seconds == Approx(1e-3 * (static_cast<double>(i) + 1)));
    REQUIRE(layers[i].backward_input.size() == 1);
    CHECK(layers[i].backward_input[0].seconds == Approx(4e-3));
    REQUIRE(layers[i].backward_weight.size() == 1);
    CHECK(layers[i].backward_weight[0].seconds == Approx(5e-4));
    CHECK(layers[i].parameters == 100);
    CHECK(layers[i].output_bytes == (i < 2 ? 1000 : 0));
  }
  CHECK(parameter_count(model) == 300);
  CHECK(flops_per_sample(model, 0) == 0);  // unknown
}

TEST_CASE("bad models are refused with their place") {
  struct Case {
    std::string text;
    std::string error;  // how the message begins
  };
  const std::string profiled =
      "[model.profiled]\nstages = 2\nbackward_input_ms = 1\nbackward_weight_ms = 1\n";
  const std::string net = "[model.convolutional]\nimage_size = 8\n[[model.convolutional.stage]]\n";
  const std::string stage = "[[model.convolutional.stage]]\n";
  const std::string branches =
      net + "kind = \"convolution\"\nchannels = 4\nkernel = 3\n" + stage + "kind = \"branches\"\nbranches = ";
  const Case cases[] = {
      {"[model]", "job.toml:1:1: no model is described; allowed: one of preset, file, "},
      {"[model]\npreset = \"gpt2-xxl\"",
       "job.toml:2:10: model.preset is \"gpt2-xxl\"; allowed: alexnet, bert-base, bert-large, "},
      {"[model]\npreset = \"../base\"", "job.toml:2:10: model.preset is \"../base\"; allowed: "},
      {"[model]\npreset = \"gpt2\"\nfile = \"a.toml\"",
       "job.toml:3:8: model.file is given with preset; allowed: one of preset, file"},
      {"[model]\nhuggingface = \"config.json\"", "./config.json: there is no such file"},
      {"[model]\nhuggingface = 3", "job.toml:2:15: model.huggingface is 3; allowed: a string"},
      {"[model]\npreset = \"gpt2\"\nlayers = 3", "job.toml:3:1: unknown key \"layers\" in [model]"},
      {"[model.transformer]\nhead = 4" + kGpt,
       "job.toml:2:1: unknown key \"head\" in [model.transformer]; did you mean \"heads\""},
      {"[model.transformer]\nlayers = 2\nhidden = 100\nheads = 7",
       "job.toml:4:9: model.transformer.heads is 7; allowed: a divisor of hidden, 100"},
      {"[model.transformer]\nlayers = 2\nhidden = 64\nheads = 8\nkv_heads = 3",
       "job.toml:5:12: model.transformer.kv_heads is 3; allowed: a divisor of heads, 8"},
      {"[model.transformer]\nlayers = -1",
       "job.toml:2:10: model.transformer.layers is -1; allowed: an integer from 1"},
      {"[model.transformer]\nlayers = 1e30", "job.toml:2:10: model.transformer.layers is "},
      {"[model.multi_layer_perceptron]\nwidths = [3, 0]",
       "job.toml:2:14: model.multi_layer_perceptron.widths[1] is 0"},
      {"[model.multi_layer_perceptron]",
       "job.toml:1:1: model.multi_layer_perceptron.widths is missing; allowed: two or more"},
      {profiled + "forward_ms = [1, 2, 3]\np2p_bytes = 0",
       "job.toml:5:14: model.profiled.forward_ms is an array of 3; allowed: a number, or an array with one "
       "element for each of the 2"},
      {profiled + "layers = 2\nforward_ms = 1\np2p_bytes = 0",
       "job.toml:5:10: model.profiled.layers is given with stages; allowed: one of stages, layers"},
      {profiled + "forward_ms = 1\np2p_bytes = 0\nnames = [\"a\"]",
       "job.toml:7:9: model.profiled.names is an array of 1; allowed: an array with one element for each of "
       "the 2 "
       "stages"},
      {profiled + "forward_ms = 1\np2p_bytes = 0\noptimizer_ms = 1",
       "job.toml:7:16: model.profiled.parameters is missing with optimizer_ms = "},
      {profiled + "forward_ms = 1\np2p_bytes = 1e15",
       "job.toml:6:13: model.profiled.p2p_bytes is 1000000000000000.0; allowed: a number from 0 to "},
      {profiled + "forward_ms = nan", "job.toml:5:14: model.profiled.forward_ms is NaN"},
      {profiled + "forward_ms = \"fast\"",
       "job.toml:5:14: model.profiled.forward_ms is a string \"fast\"; allowed: a number above 0"},
      {profiled + "forward_ms = 1", "job.toml:1:1: model.profiled.p2p_bytes is missing"},
      {"[model.convolutional]\nimage_size = 8", "job.toml:1:1: model.convolutional.stage is missing"},
      {net + "kind = \"conv\"",
       "job.toml:4:8: model.convolutional.stage[0].kind is \"conv\"; allowed: \"convolution\""},
      {net + "kind = \"max-pool\"\nkernel = 99\nstride = 1\npadding = 0",
       "job.toml:5:10: model.convolutional.stage[0].kernel is 99; allowed: 1 to 8"},
      {net + "kind = \"branches\"\nbranches = [\"1x1:4\"]",
       "job.toml:4:8: model.convolutional.stage[0].kind is the first stage; allowed: a convolution before "
       "it"},
      {branches + "[]",
       "job.toml:9:12: model.convolutional.stage[1].branches is 0 of them; allowed: 1 to 32"},
      {branches + "[\"\"]",
       "job.toml:9:12: model.convolutional.stage[1].branches is an empty branch; allowed: "},
      {branches + "[\"1x1:4\", \"1x1:4 3y3:4\"]",
       "job.toml:9:12: model.convolutional.stage[1].branches is \"3y3:4\" in a branch; allowed: steps such "
       "as"},
      {branches + "[\"2x2:4\"]",
       "job.toml:9:12: model.convolutional.stage[1].branches is \"2x2:4\" in a branch"},
      {branches + "[\"9x9:4/2\"]",
       "job.toml:9:12: model.convolutional.stage[1].branches is \"9x9:4/2\" in a"},
      {branches + "[\"1x1:4|max3/2\"]",
       "job.toml:9:12: model.convolutional.stage[1].branches is \"1x1:4|max3/2\" in a branch"},
      {branches + "[\"1x1:4\", \"max3/2\"]",
       "job.toml:9:12: model.convolutional.stage[1].branches is of sizes 8 and 3; allowed: maps of one size"},
      {net + "kind = \"average-pool\"",
       "job.toml:4:8: model.convolutional.stage[0].kind is the last stage; allowed: a network"},
      {net + "kind = \"linear\"\nwidths = [9]\n" + stage + "kind = \"average-pool\"",
       "job.toml:7:8: model.convolutional.stage[1].kind is \"average-pool\" after a linear stage"},
      {net + "kind = \"basic\"\nblocks = 1\nwidth = 8\nexpansion = 4\n" + stage +
           "kind = \"linear\"\nwidths = [9]",
       "job.toml:7:1: unknown key \"expansion\""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const std::string found = error_of(c.text);
    CHECK(found.substr(0, c.error.size()) == c.error);
  }
  SECTION("steps of branches") {
    for (const std::string step :
         {"x3:4",     "3x:4",   "3x3",     "3x3:",     "3x3:0",  "03x3:4", "3x3:1000000",
          "1001x1:4", "3x3:4/", "3x3:4/0", "3x3:4/10", "3x3:4,", "+3x3:4", "3.0x3:4",
          "3x3:-4",   "avg",    "avg0",    "max3/",    "max3:4", "mean3"}) {
      CAPTURE(step);
      const std::string error = "job.toml:9:12: model.convolutional.stage[1].branches is \"" + step;
      CHECK(error_of(branches + "[\"" + step + "\"]").substr(0, error.size()) == error);
    }
    for (const std::string step : {"3x3:4", "1x7:999999", "3x3:4/2", "avg3", "max3/2", "8x8:4/9", "999x1:4"})
      CHECK(error_of(branches + "[\"" + step + "\"]").find("in a branch") == std::string::npos);
  }
  SECTION("a preset by name alone") {
    try {
      model_preset("resnet-50");
      FAIL("no error");
    } catch (const InputError& error) {
      CHECK(std::string(error.what()).find("did you mean \"resnet50\"?") != std::string::npos);
    }
  }
}
