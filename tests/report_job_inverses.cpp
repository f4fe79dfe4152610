// Checks that what the writers of launch files write is read as the scenario that it was written from.
#include <algorithm>
#include <map>

#include "simulator/jobs/launch/launch_files.hpp"
#include "simulator/scenario/reading/open_scenario.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"
#include "tests/launch_cases.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

// What must be the same; each framework's own limits are listed where they are checked.
void check_same(const Scenario& written, const Scenario& read) {
  CHECK(read.training.global_batch == written.training.global_batch);
  CHECK(read.training.micro_batch == written.training.micro_batch);
  CHECK(read.microbatches == written.microbatches);
  CHECK(read.cluster->devices() == written.cluster->devices());
  CHECK(read.training.precision == written.training.precision);
  CHECK(read.strategy.data == written.strategy.data);
  CHECK(read.strategy.context == written.strategy.context);
  CHECK(read.strategy.zigzag == written.strategy.zigzag);
}

std::string setting_of(const Scenario& scenario, const std::string& key, const std::string& fallback) {
  for (const auto& [path, value] : scenario.settings)
    if (path == key) return value;
  return fallback;
}

// The stage, with FSDP's words counted as stage 3.
std::string shards_of(const Scenario& scenario) {
  const std::string fsdp = setting_of(scenario, "strategy.fsdp", "none");
  const std::string degree = setting_of(scenario, "strategy.shard_degree", "");
  if (fsdp == "hybrid") return "hybrid " + degree;
  return fsdp == "full" ? "3" : setting_of(scenario, "strategy.zero_stage", "0");
}

}  // namespace

TEST_CASE("Megatron-LM's script is read as the scenario that it was written from") {
  int read = 0;
  for (const LaunchCase& one : kLaunchCases) {
    const Scenario written = scenario_of(one);
    const LaunchFile file = megatron_launch(written);
    CAPTURE(one.model, one.overrides, file.text);
    if (!file.possible) continue;
    ++read;
    const Scenario again = read_scenario_text(
        file.text, file.name,
        {std::string("cluster.preset=") + one.cluster, "cluster.nodes=" + std::to_string(one.nodes),
         "model.transformer.vocabulary=" +
             std::to_string(static_cast<long>(std::get<Transformer>(written.model.shape).vocabulary))});
    check_same(written, again);
    const Transformer &a = std::get<Transformer>(written.model.shape),
                      &b = std::get<Transformer>(again.model.shape);
    // No argument gives routers biases.
    const double router_biases = std::string(one.model) == "gpt-oss-20b" ? a.layers * a.experts : 0;
    CHECK(parameter_count(again.model) + router_biases == parameter_count(written.model));
    CHECK(b.dropout == a.dropout);
    CHECK(b.window == a.window);
    CHECK(again.strategy.tensor == written.strategy.tensor);
    CHECK(again.strategy.pipeline == written.strategy.pipeline);
    CHECK(again.strategy.virtual_stages == written.strategy.virtual_stages);
    CHECK(again.strategy.expert == written.strategy.expert);
    CHECK(again.strategy.capacity_factor == written.strategy.capacity_factor);
    CHECK(again.training.gradient_precision == written.training.gradient_precision);
    CHECK(again.training.cuda_graphs == written.training.cuda_graphs);
    CHECK(again.training.fused_loss == written.training.fused_loss);
    CHECK(again.training.optimizer == written.training.optimizer);
    CHECK((again.training.attention == AttentionKernels::unfused) ==
          (written.training.attention == AttentionKernels::unfused));
    CHECK(again.strategy.offload.optimizer == written.strategy.offload.optimizer);
    CHECK(shards_of(again) == shards_of(written));
    const bool overlaps =
        written.strategy.tensor > 1 && written.strategy.tensor_overlap == TensorOverlap::chunks;
    CHECK((again.strategy.tensor_overlap == TensorOverlap::chunks) == overlaps);
    if (written.training.recompute == Recompute::full) {  // the others have no argument, or no effect
      CHECK(again.training.recompute == written.training.recompute);
      CHECK(again.training.recompute_layers == written.training.recompute_layers);
    }
  }
  CHECK(read == static_cast<int>(kLaunchCases.size()) - 1);  // BLOOM's norm of embeddings has no argument
}

TEST_CASE("torchtitan's configuration is read as the scenario that it was written from") {
  int read = 0;
  for (const LaunchCase& one : kLaunchCases) {
    const Scenario written = scenario_of(one, {"training.gradient_precision=fp32"});
    const LaunchFile file = torchtitan_launch(written);
    CAPTURE(one.model, one.overrides, file.text);
    if (!file.possible) continue;
    ++read;
    const Scenario again = read_scenario_text(
        file.text, file.name,
        {std::string("cluster.preset=") + one.cluster, "cluster.nodes=" + std::to_string(one.nodes),
         std::string("model.preset=") + one.model});
    check_same(written, again);
    CHECK(again.training.sequence_length ==
          tokens_per_sample(written.model, written.training.sequence_length));
    CHECK(again.strategy.tensor == written.strategy.tensor);
    CHECK(again.strategy.pipeline == written.strategy.pipeline);
    CHECK(again.strategy.expert == written.strategy.expert);
    CHECK(again.training.gradient_precision == Precision::fp32);
    if (written.training.recompute != Recompute::selective)
      CHECK(again.training.recompute == written.training.recompute);
    if (written.strategy.context > 1 && written.strategy.context_kind == ContextKind::all_gather)
      CHECK(again.strategy.context_kind == written.strategy.context_kind);
    const std::string shards = shards_of(written);
    if (shards == "3" || shards.rfind("hybrid", 0) == 0) CHECK(shards_of(again) == shards);
  }
  CHECK(read >= 6);
}

TEST_CASE("DeepSpeed's configuration is read as the scenario that it was written from") {
  int read = 0;
  for (const LaunchCase& one : kLaunchCases) {
    if (std::string(one.model).find("x") != std::string::npos) continue;  // experts are the program's
    const Scenario written = scenario_of(one);
    const LaunchFile file = deepspeed_launch(written);
    CAPTURE(one.model, one.overrides, file.text);
    // Pipelines are the program's, so its degree is not in the file.
    if (!file.possible || written.strategy.pipeline > 1) continue;
    ++read;
    const Scenario again = read_scenario_text(
        file.text, file.name,
        {std::string("cluster.preset=") + one.cluster, "cluster.nodes=" + std::to_string(one.nodes),
         std::string("model.preset=") + one.model,
         "training.sequence_length=" + std::to_string(static_cast<int>(tokens_per_sample(
                                           written.model, written.training.sequence_length))),
         "training.precision=" + std::string(name_of(written.training.precision))});
    check_same(written, again);
    CHECK(again.training.gradient_precision == written.training.gradient_precision);
    CHECK(again.training.optimizer == written.training.optimizer);
    CHECK(shards_of(again) == shards_of(written));
    CHECK(again.strategy.offload.optimizer == written.strategy.offload.optimizer);
  }
  CHECK(read >= 6);
}

TEST_CASE("a converted job gives the scenario that the job file gives") {
  const LaunchCase& one = kLaunchCases[1];
  const LaunchFile file = megatron_launch(scenario_of(one));
  const std::vector<std::string> overrides = {std::string("cluster.preset=") + one.cluster,
                                              "model.transformer.vocabulary=128256"};
  OpenedScenario opened = open_scenario(file.text, file.name);
  REQUIRE(opened.job);
  complete_scenario(opened, file.name, overrides);
  const std::string text = job_scenario_text(*opened.job, opened.document);
  CAPTURE(text);
  const Scenario direct = read_scenario_text(file.text, file.name, overrides),
                 converted = read_scenario_text(text, file.name);
  CHECK(direct.text == converted.text);  // the complete scenario, so that the prediction is the same, too
  CHECK(text.find("--tensor-model-parallel-size 8") != std::string::npos);
  CHECK(text.find("was read as a launch script of Megatron-LM") != std::string::npos);
}
