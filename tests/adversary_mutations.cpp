// Mutates every shipped file structurally: accepted inputs must give sound figures, and errors must say where
// and why an input is refused.
//   REHEARSE_SEED=1 REHEARSE_INPUTS=20000 build/bin/test_adversary "mutated*"
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>

#include "simulator/commands/sweep/sweep_points.hpp"
#include "simulator/commands/validate/collective_table.hpp"
#include "simulator/commands/validate/kernel_table.hpp"
#include "simulator/commands/validate/table.hpp"
#include "simulator/report/recorded_run.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/adversary_figures.hpp"
#include "tests/adversary_mutate.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;
using namespace rehearse::adversary;
namespace fs = std::filesystem;

namespace {

const fs::path kRoot = fs::path(REHEARSE_TESTS_DIR) / "..";
constexpr int kSeconds = 10;  // processor time per input; nearly all inputs take milliseconds

// Returns true if the engine simulates the scenario within milliseconds.
bool is_small(const Scenario& scenario) {
  constexpr int kDevices = 128, kMicrobatches = 64, kSteps = 4;
  constexpr double kOps = 50'000;
  const StrategyChoice& strategy = scenario.strategy;
  if (scenario.cluster->devices() + scenario.cluster->server_nodes() > kDevices || scenario.steps > kSteps)
    return false;
  if (scenario.microbatches * strategy.virtual_stages > kMicrobatches) return false;
  if (scenario.engine.fidelity == Fidelity::chunk) return false;  // sends one message per chunk of a buffer
  const Plan plan = write_schedule(scenario);
  double ops = 0;
  for (const Program& program : plan.schedule->programs)
    for (const Op& op : program.ops) ops += static_cast<double>(1 + op.messages.size());
  return ops * scenario.cluster->devices() * plan.schedule->repeats(scenario.steps) < kOps;
}

Verdict simulated(const Scenario& scenario) {
  if (!is_small(scenario)) return {Verdict::Kind::result, "read"};
  const std::string wrong = unsound(predict(scenario, Where::here));
  return {wrong.empty() ? Verdict::Kind::result : Verdict::Kind::broken, wrong};
}

Verdict scenario_with(const std::string& text) {
  return simulated(read_scenario_text(text, "template.toml"));
}

// Reads and judges the file at `path`, whose text is also passed.
using Judge = Verdict (*)(const std::string& path, const std::string& text);

Verdict judge_scenario(const std::string&, const std::string& text) {
  return simulated(read_scenario_text(text, (kRoot / "simulator/scenarios/mutated.toml").string()));
}

Verdict judge_model(const std::string& path, const std::string&) {
  const char* key = path.ends_with(".json") ? "huggingface" : "file";
  return scenario_with(
      fmt::format("model.{} = \"{}\"\ntraining = {{global_batch = 4, micro_batch = 2}}\n"
                  "cluster = {{preset = \"dgx-a100\", devices_per_node = 2}}\n",
                  key, path));
}

Verdict judge_cluster(const std::string& path, const std::string&) {
  return scenario_with(
      fmt::format("model.preset = \"mlp\"\ntraining = {{global_batch = 5040}}\n"
                  "cluster = {{file = \"{}\", nodes = 2}}\n",
                  path));
}

Verdict judge_device(const std::string& path, const std::string&) {
  return scenario_with(
      fmt::format("model.preset = \"mlp\"\ntraining = {{global_batch = 4}}\n[cluster]\nnodes = 2\n"
                  "node = {{device_file = \"{}\", devices = 1, nic_gbps = 100}}\n",
                  path));
}

Verdict judge_links(const std::string& path, const std::string&) {
  return scenario_with(
      fmt::format("model.preset = \"mlp\"\ntraining.global_batch = 4\n"
                  "cluster = {{preset = \"dgx-a100\", devices_per_node = 4}}\n"
                  "simulation = {{protocol = \"measured\", link_profile = \"{}\"}}\n",
                  path));
}

Verdict judge_strategy(const std::string&, const std::string& text) {
  return scenario_with(
      "model.preset = \"mlp\"\ntraining = {global_batch = 32, precision = \"fp32\"}\n"
      "cluster = {preset = \"dgx1-v100\", nodes = 1, server_nodes = 1}\n" +
      text);
}

Verdict judge_sweep(const std::string&, const std::string& text) {
  const Sweep sweep = parse_sweep_file(text, (kRoot / "simulator/scenarios/mutated.toml").string());
  const fs::path scenario = kRoot / "simulator/scenarios" / sweep.scenario_path;
  return simulated(read_scenario_file(scenario.string(), sweep.overrides_of((1 + sweep.points()) / 2)));
}

Verdict judge_table(const std::string& path, const std::string& text) {
  if (is_kernel_table(text)) {
    const std::vector<double> seconds = predicted_times_s(parse_kernel_table(text, path));
    if (!(*std::min_element(seconds.begin(), seconds.end()) > 0))
      return {Verdict::Kind::broken, "a kernel takes no time"};
    return {Verdict::Kind::result, ""};
  }
  if (is_collective_table(text)) {
    MeasurementTable collectives = parse_collective_table(text, path);
    collectives.rows.resize(1);
    if (!(predict_collectives(collectives, {}).front().time_s > 0))
      return {Verdict::Kind::broken, "a collective takes no time"};
    return {Verdict::Kind::result, ""};
  }
  const MeasurementTable table = parse_measurements(text, path);
  return simulated(read_scenario_text(table.rows.front().scenario, path + ":" + table.rows.front().id));
}

Verdict judge_run(const std::string& path, const std::string& text) {
  const RecordedRun run = parse_run(text, path);
  const MeasuredFigures figures =
      evaluate_measured(run.trace, run.scenario, run.plan, run.measured ? run.measured->warmup_steps : 0);
  if (!(figures.metrics.step_time_s > 0)) return {Verdict::Kind::broken, "the measured step takes no time"};
  return {Verdict::Kind::result, ""};
}

constexpr const char* kSweep = R"(scenario = "mlp-ring.toml"
[set]
training.micro_batch = 1
[vary]
strategy.all_reduce = ["ring", "tree", "auto"]
cluster.nodes = "2..8*2"
strategy.data = "2..8*2"
[[zip]]
training.global_batch = [64, 128]
training.optimizer = ["adam", "sgd"]
)";

constexpr const char* kLlama = R"({"model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
"max_position_embeddings": 512, "num_attention_heads": 8, "num_hidden_layers": 4, "num_key_value_heads": 2,
"vocab_size": 1000, "tie_word_embeddings": false, "architectures": ["LlamaForCausalLM"]})";
constexpr const char* kMixtral = R"({"model_type": "mixtral", "hidden_size": 256, "intermediate_size": 512,
"max_position_embeddings": 512, "num_attention_heads": 8, "num_hidden_layers": 2, "num_key_value_heads": 2,
"num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 1000, "sliding_window": null})";
constexpr const char* kBert = R"({"model_type": "bert", "hidden_size": 256, "intermediate_size": 512,
"max_position_embeddings": 128, "num_attention_heads": 4, "num_hidden_layers": 2, "type_vocab_size": 2,
"vocab_size": 1000, "architectures": ["BertForPreTraining"]})";
constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "n_ctx": 256, "n_embd": 256, "n_head": 4, "n_layer": 2,
"n_positions": 256, "vocab_size": 1000, "n_inner": null, "activation_function": "gelu_new"})";

struct FileKind {
  const char* name;
  Syntax syntax;
  const char* ending;
  Judge judge;
  const char* folder;              // folder with the shipped files of this kind
  std::vector<const char*> texts;  // further seed texts
};

const std::vector<FileKind> kKinds = {
    {"scenario", Syntax::toml, ".toml", judge_scenario, "simulator/scenarios", {}},
    {"model", Syntax::toml, ".toml", judge_model, "models/presets", {}},
    {"cluster", Syntax::toml, ".toml", judge_cluster, "topologies/presets", {}},
    {"device", Syntax::toml, ".toml", judge_device, "topologies/presets/devices", {}},
    {"strategy", Syntax::toml, ".toml", judge_strategy, "simulator/strategies/presets", {}},
    {"links", Syntax::toml, "measured-links.toml", judge_links, "tests", {}},
    {"sweep", Syntax::toml, ".toml", judge_sweep, "", {kSweep}},
    {"table", Syntax::csv, ".csv", judge_table, "benchmarks/measurements", {}},
    {"run", Syntax::json, ".json", judge_run, "tests/golden/runs", {}},
    {"Hugging Face", Syntax::json, ".json", judge_model, "", {kLlama, kMixtral, kBert, kGpt2}},
};

std::vector<Tree> seeds_of(const FileKind& kind) {
  std::vector<Tree> seeds;
  for (const char* text : kind.texts) seeds.push_back(parse(kind.syntax, text));
  if (*kind.folder == '\0') return seeds;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(kRoot / kind.folder))
    if (entry.is_regular_file() && entry.path().string().ends_with(kind.ending))
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());  // makes a seed pick the same files on every machine
  for (const fs::path& path : paths) {
    Tree seed = parse(kind.syntax, test::read_file(path));
    if (kind.syntax == Syntax::csv && seed.children.size() > 4) seed.children.resize(4);
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

// Checks the wording of an error: it must be short and say what is allowed or where the syntax breaks.
// Recorded runs are written by programs, so their errors only say what contradicts the schedule.
std::string complaint_about(const Verdict& verdict, const FileKind& kind) {
  constexpr std::size_t kLongest = 2000;
  constexpr std::array kWords = {"allowed",  "did you mean", "TOML",        "JSON",
                                 "required", "UTF-8",        "no such file"};
  const std::string& message = verdict.message;
  const auto says = [&](const char* word) { return message.find(word) != std::string::npos; };
  if (verdict.kind == Verdict::Kind::failed && says("wait forever"))
    return "a plan that cannot be carried out";
  if (verdict.kind != Verdict::Kind::refused && verdict.kind != Verdict::Kind::failed) return "";
  if (message.size() > kLongest) return fmt::format("an error of {} bytes", message.size());
  if (verdict.kind == Verdict::Kind::refused && kind.judge != judge_run &&
      std::none_of(kWords.begin(), kWords.end(), says))
    return "does not say what is allowed";
  return "";
}

const char* ending_of(Syntax syntax) {
  return syntax == Syntax::toml ? ".toml" : syntax == Syntax::json ? ".json" : ".csv";
}

}  // namespace

TEST_CASE("mutated files give sound figures or errors that help") {
  const test::Scratch scratch;
  std::vector<std::vector<Tree>> seeds;
  std::vector<Tree> all;
  for (const FileKind& kind : kKinds) {
    seeds.push_back(seeds_of(kind));
    REQUIRE_FALSE(seeds.back().empty());
    all.insert(all.end(), seeds.back().begin(), seeds.back().end());
  }
  const int inputs = input_count(2000);
  std::map<Verdict::Kind, int> ended;
  int only_read = 0;
  for (int i = 0; i < inputs; ++i) {
    const std::uint64_t seed = first_seed() + static_cast<std::uint64_t>(i);
    Generator random(seed);
    // Half of the inputs are scenarios, which have the most keys.
    const std::size_t k = random.one_in(2) ? 0 : random.below(kKinds.size());
    const FileKind& kind = kKinds[k];
    Tree tree = random.pick(seeds[k]);
    const std::vector<Tree>& others = random.one_in(4) ? all : seeds[k];
    std::string mutations;
    for (std::size_t left = random.one_in(2) ? 1 : 2 + random.below(2); left > 0; --left)
      mutations += std::string(mutations.empty() ? "" : ", ") + mutate(tree, others, random);
    const std::string text = write(kind.syntax, tree);
    const std::string path = scratch.write(std::string("input") + ending_of(kind.syntax), text);
    Verdict verdict = in_child([&] { return kind.judge(path, text); }, kSeconds);
    const std::string complaint = complaint_about(verdict, kind);
    if (!complaint.empty()) verdict = {Verdict::Kind::broken, complaint + ": " + verdict.message};
    ++ended[verdict.kind];
    only_read += verdict.kind == Verdict::Kind::result && verdict.message == "read";
    if (verdict.kind != Verdict::Kind::broken) continue;
    FAIL_CHECK(fmt::format("REHEARSE_SEED={} REHEARSE_INPUTS=1: {}, mutated: {}\n{}\nSaved as {}", seed,
                           kind.name, mutations, verdict.message.substr(0, 3000),
                           saved(seed, ending_of(kind.syntax), text)));
  }
  using enum Verdict::Kind;
  INFO(fmt::format("{} results, {} of them only read; {} refused, {} failed", ended[result], only_read,
                   ended[refused], ended[failed]));
  if (inputs < 200) return;
  CHECK(ended[Verdict::Kind::result] - only_read >
        inputs / 6);  // if nearly all inputs are refused, the test proves little
  CHECK(ended[Verdict::Kind::refused] > inputs / 5);
}
