// Checks training.recompute_layers: the first layers of each stage are recomputed, the others store their
// activations (Megatron-LM's --recompute-method block --recompute-num-layers).
#include <fmt/format.h>

#include <map>

#include "models/kernels.hpp"
#include "models/text/error.hpp"
#include "simulator/costs/compute.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/memory_run.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr const char* kClusterOf = "preset = \"dgx-a100\"\nnodes = 1\ndevices_per_node = {}\n";

double seconds(const std::vector<Kernel>& kernels, const Scenario& scenario) {
  double sum = 0;
  for (const Kernel& kernel : kernels)
    sum += kernel_time_s(kernel, scenario.cluster->node().device, scenario.training.precision);
  return sum;
}

std::string refusal_of(const std::string& training, const std::string& strategy, int devices) {
  try {
    scenario_of(gpt_text({}), training, strategy, fmt::format(kClusterOf, devices));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("recomputing n layers adds n times what is computed again, and keeps the others' activations") {
  const GptShape gpt;
  const double s = gpt.sequence, b = 2, h = gpt.hidden, sbh = s * b * h;
  const double kept = sbh * (34 + 5 * gpt.heads * s / h);  // Korthikanti et al. 2022, equation 1
  struct Case {
    const char* recompute;
    double left;  // bytes that a recomputed layer still stores
  };
  for (const Case& c : {Case{"full", 2 * sbh}, Case{"selective", 34 * sbh},
                        // Input, queries, values, and GELU's input.
                        Case{"operators", (2 + 2 + 2 + 8) * sbh}}) {
    constexpr int kMicrobatches = 3;
    const auto run = [&](const std::string& keys) {
      return predicted(
          scenario_of(gpt_text(gpt),
                      fmt::format("micro_batch = 2\nglobal_batch = {}\nattention = \"unfused\"\n{}",
                                  2 * kMicrobatches, keys),
                      "data = 1\n", fmt::format(kClusterOf, 1)));
    };
    const Prediction base = run("");
    for (int n = 1; n <= gpt.layers; ++n) {
      CAPTURE(c.recompute, n);
      const Prediction some = run(fmt::format("recompute = \"{}\"\nrecompute_layers = {}\n", c.recompute, n));
      const LayerCost layer = layer_costs(some.scenario.model, pass_shape(some.scenario))[1];
      CHECK(some.metrics.step_time_s ==
            Approx(base.metrics.step_time_s + kMicrobatches * n * seconds(layer.recompute, some.scenario))
                .epsilon(1e-9));
      // While a layer is recomputed, all of its activations are in memory, too.
      CHECK(some.metrics.memory.activations - base.metrics.memory.activations ==
            Approx(n * (c.left - kept) + (kept - c.left)).epsilon(1e-9));
      CHECK(some.metrics.memory.weights == base.metrics.memory.weights);
    }
    const Prediction all = run(fmt::format("recompute = \"{}\"\n", c.recompute)),
                     each = run(
                         fmt::format("recompute = \"{}\"\nrecompute_layers = {}\n", c.recompute, gpt.layers));
    CHECK(each.metrics.step_time_s == Approx(all.metrics.step_time_s).epsilon(1e-12));
    CHECK(each.metrics.memory.total == all.metrics.memory.total);
  }
}

TEST_CASE("the first layers of each stage, and of each virtual stage, are recomputed") {
  const double s = 512, b = 1, h = 1024, sbh = s * b * h, v = 32000;
  struct Case {
    const char* strategy;
    int devices, data;
    double tensor;     // degree of tensor parallelism
    bool sequence;     // sequence parallelism
    int parts, whole;  // parts of the model, transformer layers of a middle part
  };
  const Case cases[] = {
      {"data = 1\npipeline = 4\n", 4, 1, 1, false, 4, 2},
      {"data = 1\npipeline = 4\nblocking_p2p = true\n", 4, 1, 1, false, 4, 2},
      {"data = 1\npipeline = 2\nschedule = \"interleaved\"\nvirtual_stages = 2\n", 2, 1, 1, false, 4, 2},
      {"data = 1\npipeline = 2\nschedule = \"breadth-first\"\nvirtual_stages = 2\n", 2, 1, 1, false, 4, 2},
      {"data = 1\npipeline = 2\nschedule = \"zb-h1\"\n", 2, 1, 1, false, 2, 4},
      {"data = 1\npipeline = 2\nschedule = \"zb-v\"\n", 2, 1, 1, false, 4, 2},
      {"data = 1\npipeline = 2\ntensor = 2\n", 4, 1, 2, false, 2, 4},
      {"data = 1\npipeline = 2\ntensor = 2\nsequence_parallel = true\n", 4, 1, 2, true, 2, 4},
      {"pipeline = 2\ndata = 2\nbucket_mb = 1\n", 4, 2, 1, false, 2, 4},
      {"pipeline = 2\ndata = 2\nfsdp = \"full\"\n", 4, 2, 1, false, 2, 4},
      {"pipeline = 2\ndata = 2\nzero_stage = 2\n", 4, 2, 1, false, 2, 4},
  };
  for (const Case& c : cases)
    for (const bool full : {true, false})
      for (int n = 1; n <= c.whole; ++n) {
        CAPTURE(c.strategy, full, n);
        // Equal parts of transformer layers; the first and the last part also hold the embedding and the
        // head.
        std::string parts;
        for (int part = 0; part < c.parts; ++part)
          parts += fmt::format("{}{}", part > 0 ? ", " : "", c.whole + (part == 0) + (part == c.parts - 1));
        const Scenario scenario = scenario_of(
            gpt_text({}),
            fmt::format("micro_batch = 1\nglobal_batch = {}\nattention = \"unfused\"\nrecompute = \"{}\"\n"
                        "recompute_layers = {}\n",
                        4 * c.data, full ? "full" : "selective", n),
            c.strategy + fmt::format("stage_layers = [{}]\n", parts), fmt::format(kClusterOf, c.devices));
        const Plan plan = write_schedule(scenario);
        REQUIRE_NOTHROW(check(*plan.schedule));
        // Korthikanti et al. 2022, equations 1, 2 and 4.
        const double t = c.tensor, attention = 5 * 16 * s / h;
        const double kept = c.sequence ? sbh / t * (34 + attention) : sbh * (10 + 24 / t + attention / t);
        const double left = full ? 2 * sbh / (c.sequence ? t : 1) : kept - sbh * attention / t;
        const double own =
            sbh / (c.sequence ? t : 1);  // share of tensors that are not sharded without sequence parallelism
        for (const Program& program : plan.schedule->programs) {
          // By part: what it stores of its first micro-batch, for either part of the backward pass.
          std::map<int, std::pair<int, double>> parts_kept;  // by first layer: last layer, bytes
          for (const Tensor& tensor : program.tensors) {
            if (tensor.name.rfind("activations ", 0) != 0 || tensor.microbatch != 0) continue;
            parts_kept[tensor.first_layer].first = tensor.last_layer;
            parts_kept[tensor.first_layer].second += tensor.bytes.base;
          }
          REQUIRE_FALSE(parts_kept.empty());
          for (const auto& [first_layer, part] : parts_kept) {
            CAPTURE(first_layer);
            double expected = n * left + (c.whole - n) * kept;
            if (first_layer == 0) expected += own;  // the mask of the embedding's dropout
            if (part.first == 9)                    // the inputs of last norm and logits, and their softmax
              expected += 4 * own + 4 * s * b * v / t;
            CHECK(part.second == Approx(expected).epsilon(1e-12));
          }
        }
        // The recomputed FLOPs over all ranks: n layers of each part for each micro-batch.
        double again = 0;
        for (int rank = 0; rank < plan.schedule->roles[0].size(); ++rank)
          for (const Op& op : plan.schedule->programs[plan.schedule->program_of(0, rank)].ops) {
            if (op.work < 0) continue;
            again += plan.schedule->works[op.work].extra_flops;
            if (op.pass == Pass::recompute) CHECK_FALSE(plan.schedule->works[op.work].kernels.empty());
          }
        Scenario alone = scenario;
        alone.strategy.tensor = 1;
        alone.strategy.sequence_parallel = false;
        const LayerCost layer = layer_costs(alone.model, pass_shape(alone))[1];
        CHECK(again == Approx(scenario.training.global_batch * n * c.parts * product_flops(layer.recompute))
                           .epsilon(1e-9));
      }
}

TEST_CASE("recompute_layers that no stage has are refused, with those that one has") {
  const std::string full = "global_batch = 8\nrecompute = \"full\"\n";
  struct Case {
    std::string training, strategy, found, allowed;
    int devices;
  };
  const Case cases[] = {
      {full + "recompute_layers = 9\n", "data = 1\n", "is 9;", "allowed: 1 to 8, ", 1},
      {full + "recompute_layers = 0\n", "data = 1\n", "is 0;", "allowed: an integer from 1 ", 1},
      {full + "recompute_layers = 5\n", "pipeline = 4\nstage_layers = [3, 2, 2, 3]\n", "is 5;",
       "allowed: 1 to 2, ", 4},
      {full + "recompute_layers = 4\n", "pipeline = 4\nstage_layers = [4, 3, 2, 1]\n", "is 4;",
       "allowed: 1 to 3, ", 4},
      {full + "recompute_layers = 2\n",
       "pipeline = 2\nschedule = \"interleaved\"\nvirtual_stages = 4\nstage_layers = [2, 1, 1, 1, 1, 1, 1, "
       "2]\n",
       "is 2;", "allowed: 1 to 1, ", 2},
  };
  for (const Case& c : cases) {
    CAPTURE(c.training, c.strategy);
    const std::string said = refusal_of(c.training, c.strategy, c.devices);
    CAPTURE(said);
    CHECK(said.rfind("memory.toml:", 0) == 0);
    CHECK(said.find("training.recompute_layers " + c.found) != std::string::npos);
    CHECK(said.find(c.allowed) != std::string::npos);
  }
  CHECK(
      refusal_of(full + "recompute_layers = 3\n", "pipeline = 4\nstage_layers = [4, 3, 2, 1]\n", 4).empty());
}
