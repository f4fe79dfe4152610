// Checks the layers of each stage in memory and in time, with embedding and loss beside the layers of the
// first and the last one; and whether transfers between stages hold up computation.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "simulator/costs/compute.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/memory_run.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr const char* kNode = "preset = \"dgx-a100\"\nnodes = 1\ndevices_per_node = 4\n";

double bytes_of(const Program& program, TensorKind kind) {
  double bytes = 0;
  for (const Tensor& tensor : program.tensors)
    if (tensor.kind == kind) bytes += tensor.bytes.base;
  return bytes;
}

}  // namespace

TEST_CASE(
    "embedding, last norm and logits count on the first and the last stage, as do a tied table's copies") {
  GptShape gpt;
  gpt.vocabulary = 50000;
  const double h = gpt.hidden, v = gpt.vocabulary, s = gpt.sequence, b = 2, m = 4;
  struct Case {
    std::vector<int> stage_layers;  // ten in all: embedding, eight layers, head
    std::vector<double> layers;     // transformer layers among them
  };
  const Case cases[] = {
      {{3, 2, 2, 3}, {2, 2, 2, 2}},
      {{4, 3, 2, 1}, {3, 3, 2, 0}},  // the last stage has only the head
      {{1, 4, 4, 1}, {0, 4, 4, 0}},  // the first stage has only the embedding, too
      {{1, 3, 4, 2}, {0, 3, 4, 1}},
  };
  for (const bool tied : {true, false})
    for (const Case& c : cases) {
      CAPTURE(tied, c.stage_layers);
      std::string parts;
      for (const int layers : c.stage_layers) parts += fmt::format("{}{}", parts.empty() ? "" : ", ", layers);
      const Scenario scenario =
          scenario_of(gpt_text(gpt) + fmt::format("tied_embeddings = {}\n", tied),
                      fmt::format("micro_batch = {}\nglobal_batch = {}\nattention = \"unfused\"\n", b, b * m),
                      fmt::format("data = 1\npipeline = 4\nstage_layers = [{}]\n", parts), kNode);
      const Prediction run = predicted(scenario);
      const std::vector<LayerCost> costs = layer_costs(scenario.model, pass_shape(scenario));
      const std::vector<LayerRange> ranges = layer_ranges(c.stage_layers);
      std::vector<double> totals;
      for (std::size_t stage = 0; stage < 4; ++stage) {
        CAPTURE(stage);
        const Program& program = run.plan.schedule->programs[stage];
        // Narayanan et al. 2021, equation 2: 12 h^2 + 13 h for each layer, (v + s) h for the tables, 2 h for
        // the last norm.
        double parameters = c.layers[stage] * (12 * h * h + 13 * h);
        if (stage == 0) parameters += (v + s) * h;
        if (stage == 3) parameters += 2 * h + v * h;
        CHECK(bytes_of(program, TensorKind::weight) == Approx(2 * parameters));
        CHECK(bytes_of(program, TensorKind::optimizer_state) == Approx(12 * parameters));
        // Korthikanti et al. 2022, equation 1 and section 4.3; 1F1B stores min(m, p - stage) micro-batches.
        double activations = c.layers[stage] * s * b * h * (34 + 5 * gpt.heads * s / h);
        if (stage == 0) activations += s * b * h;
        if (stage == 3) activations += 4 * s * b * h * (1 + v / h);
        double kept = 0;
        for (const Tensor& tensor : program.tensors)
          if (tensor.kind == TensorKind::activation && tensor.microbatch == 0) kept += tensor.bytes.base;
        CHECK(kept == Approx(activations));
        totals.push_back(16 * parameters + std::min(m, 4.0 - static_cast<double>(stage)) * activations);
        // Time of all kernels of these layers, m times.
        double seconds = 0, expected = 0;
        for (const Op& op : program.ops)
          if (op.work >= 0 && op.pass != Pass::optimizer)
            seconds += work_time_s(run.plan.schedule->works[op.work], scenario.cluster->node().device);
        for (int i = ranges[stage].first; i <= ranges[stage].last; ++i)
          expected +=
              m * layer_time_s(costs[i], scenario.cluster->node().device, scenario.training.precision);
        CHECK(seconds == Approx(expected).epsilon(1e-9));
      }
      // The rest is the tensors that pass between stages and layers, and the gradients inside a layer: of
      // attention's result, queries, keys and values, 8 s b h, of the softmax and of the scores, 4 a s^2 b.
      const double fullest = *std::max_element(totals.begin(), totals.end());
      CHECK(run.metrics.memory.total > fullest);
      CHECK(run.metrics.memory.total < fullest + (8 * 2 + 8 + 4 * gpt.heads * s / h) * s * b * h);
      const auto stage = std::max_element(totals.begin(), totals.end()) - totals.begin();
      CHECK(run.metrics.memory.fullest == fmt::format("stage {}", stage));
    }
}

TEST_CASE("a large vocabulary takes layers from the stages at the ends") {
  GptShape gpt;
  gpt.layers = 16;
  gpt.vocabulary = 256000;
  const Scenario scenario =
      scenario_of(gpt_text(gpt), "global_batch = 8\n", "data = 1\npipeline = 4\n", kNode);
  const std::vector<int> layers = write_schedule(scenario).stage_layers;
  REQUIRE(layers.size() == 4);
  CHECK(std::accumulate(layers.begin(), layers.end(), 0) == 18);
  CHECK(layers[3] < layers[1]);
  CHECK(layers[3] < layers[2]);
}

TEST_CASE("transfers between two stages, behind computation and in front of it") {
  // F and B are the times of a forward and a backward pass of a stage and micro-batch, T that of a transfer;
  // m, the number of micro-batches, is even.
  // GPipe, overlapped: the first transfer of each direction is exposed: (m + 1)(F + B) + 2 T. Blocking: every
  // transfer is, since a stage sends after it has computed: (m + 1)(F + B) + 2 m T.
  // 1F1B, overlapped: micro-batch k + 2 can begin on stage 1 once k has been sent to stage 2, its gradient
  // has come back and its backward pass has run, 2 T later than stage 1 could: (m + 1)(F + B) + m T.
  // Blocking: sends are issued together with receives between all passes: (m + 1)(F + B + T).
  const double f = 0.010, b = 0.020, bytes = 2e6, transfer = 2e-3;  // at 8 Gbit/s
  for (const int m : {2, 4, 8}) {
    struct Case {
      const char* schedule;
      bool blocking;
      double exposed;  // in units of T
    };
    const Case cases[] = {
        {"gpipe", false, 2}, {"gpipe", true, 2.0 * m}, {"1f1b", false, 1.0 * m}, {"1f1b", true, m + 1.0}};
    for (const Case& c : cases) {
      CAPTURE(m, c.schedule, c.blocking);
      const Prediction run = predicted(scenario_of(
          fmt::format("[model.profiled]\nstages = 2\nforward_ms = 10\nbackward_input_ms = 12\n"
                      "backward_weight_ms = 8\np2p_bytes = {}\n",
                      bytes),
          fmt::format("global_batch = {}\n", m),
          fmt::format("data = 1\npipeline = 2\nschedule = \"{}\"\nblocking_p2p = {}\n", c.schedule,
                      c.blocking),
          "nodes = 2\nnic_gbps = 8\n[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\n[cluster.fabric]\n"
          "kind = \"switch\"\nlatency_us = 0\n"));
      CHECK(run.metrics.step_time_s == Approx((m + 1) * (f + b) + c.exposed * transfer).epsilon(1e-6));
      CHECK(run.metrics.breakdown.compute_s == Approx(m * (f + b)));
    }
  }
}
