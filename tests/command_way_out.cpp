// Tests every remedy that the text report suggests: it must shorten the step, train more samples per second,
// or need less memory.
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;
using nlohmann::json;

namespace {

// Returns the suggested "--set a=b --set c=d" of the sentence with this beginning; empty if there is none.
std::string suggested(const std::string& text, const std::string& beginning) {
  std::istringstream words(text);
  std::string one_line, word;
  while (words >> word) one_line += (one_line.empty() ? "" : " ") + word;
  const std::size_t sentence = one_line.find(beginning);
  const std::size_t open = one_line.find("(try ", sentence);
  const std::size_t next = one_line.find(beginning == "Bottleneck:" ? "Rests on:" : "Bottleneck:", sentence);
  if (sentence == std::string::npos || open == std::string::npos || open > next) return "";
  return one_line.substr(open + 5, one_line.find(')', open) - open - 5);
}

struct Case {
  std::string name, scenario, arguments;
  std::string suggestion;  // expected part of the suggestion
};

constexpr const char* kOversubscribed = R"([model]
preset = "vgg16"
[training]
global_batch = 256
micro_batch = 16
[cluster]
preset = "dgx1-v100"
nodes = 2
nodes_per_leaf = 1
oversubscription = 8
)";

constexpr const char* kSharedLayers = R"([model]
preset = "megatron-1.7b"
[training]
global_batch = 16
micro_batch = 1
[cluster]
preset = "dgx-a100"
nodes = 1
[strategy]
tensor = 8
)";

}  // namespace

TEST_CASE("a told way out loses less time", "[release]") {
  const Scratch scratch;
  const std::string profiled = scratch.write("profiled.toml", kMeasuredStages);
  const std::string oversubscribed = scratch.write("oversubscribed.toml", kOversubscribed);
  const std::vector<Case> cases = {
      {"tensor communication inside a node", scratch.write("shared.toml", kSharedLayers), "",
       "strategy.tensor_overlap=weight-gradients"},
      {"tensor communication between nodes of one device", shipped_scenario("small-gpt"), "",
       "strategy.tensor=1 --set strategy.pipeline=2 --set strategy.sequence_parallel=false"},
      {"bubble, virtual stages", shipped_scenario("gpt3-175b"), "--set training.global_batch=768",
       "--set strategy.schedule=interleaved --set strategy.virtual_stages=2"},
      {"bubble, more virtual stages", shipped_scenario("megatron-7.5b-interleaved"),
       "--set strategy.virtual_stages=2 --set training.global_batch=64", "virtual_stages=4"},
      {"bubble, larger batch", shipped_scenario("gpt3-175b"),
       "--set training.global_batch=768 --set strategy.schedule=interleaved --set strategy.virtual_stages=2",
       "global_batch=1536"},
      {"bubble, odd micro-batches", shipped_scenario("gpt3-175b"), "--set training.global_batch=752",
       "global_batch=1504"},
      {"bubble, smaller micro-batches", shipped_scenario("gpt3-175b"),
       "--set training.micro_batch=2 --set training.global_batch=768", "micro_batch=1"},
      {"bubble of measured stages", profiled, "", "global_batch=32"},
      {"bubble of GPipe", shipped_scenario("gpt3-175b"),
       "--set strategy.schedule=gpipe --set training.micro_batch=2 --set training.global_batch=768",
       "micro_batch=1"},
      {"blocking transfers", profiled,
       "--set strategy.blocking_p2p=true --set training.global_batch=128 --set cluster.nic_gbps=20",
       "blocking_p2p=false"},
      {"transfers of a slow network", profiled,
       "--set training.global_batch=256 --set cluster.node.nic_gbps=4", "nic_gbps=8"},
      {"no overlap", shipped_scenario("resnet50-ring"),
       "--set cluster.nic_gbps=5 --set strategy.overlap=false", "overlap=true"},
      {"a slow network for gradients", shipped_scenario("resnet50-ring"), "--set cluster.nic_gbps=2",
       "global_batch=4096"},
      {"an oversubscribed fabric", oversubscribed, "", "oversubscription=1"},
      {"weights gathered twice", shipped_scenario("bert-large-ring"),
       "--set strategy.fsdp=full --set cluster.nic_gbps=10", "reshard_after_forward=false"},
      {"weights gathered late", shipped_scenario("bert-large-ring"),
       "--set strategy.fsdp=full --set strategy.prefetch=0", "prefetch=1"},
      {"gradients sent behind each micro-batch", shipped_scenario("bert-large-ring"),
       "--set strategy.zero_stage=2 --set training.micro_batch=2 --set cluster.nic_gbps=10", "zero_stage=1"},
      {"one dedicated server", shipped_scenario("resnet50-ps"), "--set strategy.parameter_server.servers=1",
       "servers=2"},
      {"one colocated server", shipped_scenario("bert-large-ps"), "--set strategy.parameter_server.servers=1",
       "servers=2"},
      {"a server on every node", shipped_scenario("bert-large-ps"), "", "gradients=all-reduce"},
      {"weights averaged too often", shipped_scenario("resnet50-local-sgd"),
       "--set cluster.nic_gbps=1 --set strategy.local_sgd.every=2", "strategy.local_sgd.every=4"},
      {"one server for many nodes", shipped_scenario("resnet50-ring"),
       "--set strategy.gradients=hierarchical-parameter-server "
       "--set strategy.hierarchical_parameter_server.placement=colocated",
       "strategy.hierarchical_parameter_server.servers=2"},
      {"a slow device", shipped_scenario("bert-large-ring"), "--set 'cluster.slow=[{device=3,factor=0.5}]'",
       "slow=[]"},
      {"small products", shipped_scenario("bert-large-ring"), "--set training.micro_batch=2",
       "micro_batch=4"},
      {"small products, one micro-batch", shipped_scenario("bert-large-ring"), "", "global_batch=1024"},
      {"a slow precision", shipped_scenario("bert-large-ring"), "--set training.precision=fp32",
       "precision=bf16"},
      {"needless recomputation", shipped_scenario("bert-large-ring"), "--set training.recompute=full",
       "recompute=none"},
      {"more recomputation than memory asks for", shipped_scenario("bert-large-ring"),
       "--set training.recompute=full --set training.micro_batch=128 --set training.global_batch=4096",
       "recompute="},
      {"the same where keeping all would not fit", shipped_scenario("bert-large-ring"),
       "--set training.recompute=full --set training.micro_batch=192 --set training.global_batch=6144",
       "recompute_layers="},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::string base = "simulate " + c.scenario + " " + c.arguments + " ";
    const Outcome text = run_rehearse(base + "--advice never");
    CAPTURE(text.err, text.out);
    const std::string sets = suggested(text.out, "Bottleneck:");
    CAPTURE(sets);
    CHECK(sets.find(c.suggestion) != std::string::npos);
    const Outcome now = run_rehearse(base + "--format json"),
                  then = run_rehearse(base + sets + " --format json");
    CAPTURE(then.err);
    REQUIRE(then.status == 0);
    const json before = json::parse(now.out), after = json::parse(then.out);
    CHECK(after["samples_per_s"].get<double>() > 1.005 * before["samples_per_s"].get<double>());
    if (before["memory_bytes"]["fits"]) CHECK(after["memory_bytes"]["fits"].get<bool>());
  }
}

TEST_CASE("a told way out fits into memory", "[release]") {
  const std::vector<Case> cases = {
      {"tokens on every tensor rank", shipped_scenario("gpt3-175b"),
       "--set strategy.tensor=8 --set strategy.data=16 --set strategy.pipeline=6 --set "
       "training.recompute=selective "
       "--set training.global_batch=768",
       "strategy.sequence_parallel=true"},
      {"activations are kept", shipped_scenario("gpt3-175b"),
       "--set training.recompute=none --set training.global_batch=768", "recompute=full"},
      // A stage stores 24 micro-batches of 8, and the same number of 4: with 48 stages only smaller ones need
      // less memory.
      {"large micro-batches", shipped_scenario("gpt3-175b"), "--set training.micro_batch=8", "micro_batch=2"},
      {"optimizer state on every rank", shipped_scenario("gpt3-175b"),
       "--set strategy.pipeline=12 --set strategy.data=64 --set training.global_batch=768",
       "strategy.zero_stage=1"},
      {"few stages", shipped_scenario("gpt3-175b"),
       "--set strategy.pipeline=12 --set strategy.data=64 --set training.global_batch=768 --set "
       "strategy.fsdp=hybrid --set strategy.shard_degree=2",
       "--set strategy.pipeline=24 --set strategy.data=32"},
      {"few stages, no data parallelism", shipped_scenario("gpt3-175b"),
       "--set cluster.nodes=1 --set strategy.pipeline=8 --set strategy.data=1 --set training.global_batch=32",
       "--set strategy.zero_stage=2 --set strategy.offload=cpu"},
      {"few stages, no data parallelism, unknown hosts", shipped_scenario("gpt3-175b"),
       "--set cluster.nodes=1 --set strategy.pipeline=8 --set strategy.data=1 --set training.global_batch=32 "
       "--set cluster.node.cpu_gb_per_s=0",
       "--set strategy.pipeline=64 --set strategy.data=1 --set cluster.nodes=8"},
      {"gradients on the device", shipped_scenario("gpt3-175b"),
       "--set cluster.nodes=1 --set strategy.pipeline=8 --set strategy.data=1 --set training.global_batch=32 "
       "--set strategy.zero_stage=1 --set strategy.offload=cpu",
       "--set strategy.zero_stage=2"},
      {"no change alone is enough", shipped_scenario("gpt3-175b"),
       "--set strategy.pipeline=12 --set strategy.data=64 --set training.recompute=none "
       "--set training.micro_batch=4 --set training.global_batch=768 --set strategy.gradients=local-sgd",
       "--set training.recompute=full --set training.micro_batch=1 --set strategy.pipeline=48 --set "
       "strategy.data=16"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::string base = "simulate " + c.scenario + " " + c.arguments + " ";
    const Outcome text = run_rehearse(base);
    CAPTURE(text.err, text.out);
    CHECK(text.out.find("Bottleneck: ") != std::string::npos);
    const std::string sets = suggested(text.out, "Does not fit:");
    CAPTURE(sets);
    CHECK(sets.find(c.suggestion) != std::string::npos);
    const Outcome now = run_rehearse(base + "--format json"),
                  then = run_rehearse(base + sets + " --format json");
    CAPTURE(then.err);
    REQUIRE(then.status == 0);
    const json before = json::parse(now.out)["memory_bytes"], after = json::parse(then.out)["memory_bytes"];
    CHECK_FALSE(before["fits"].get<bool>());
    CHECK(after["fits"].get<bool>());
  }
}
