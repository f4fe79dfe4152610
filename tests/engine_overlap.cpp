// Tests simulated communication of layers that overlaps with computation: closed forms of the hidden time.
#include <algorithm>
#include <map>
#include <string>

#include "simulator/strategies/strategy.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"
#include "tests/strategies_axes.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

// Returns one micro-batch of a transformer of 2 layers on 4 ranks that shard every layer.
Scenario sharing(TensorOverlap mode, bool sequence, double gbps) {
  Scenario s = test::axes_scenario(test::axes_gpt(2, 2048), {1, 1, 4, 1});
  s.microbatches = 1;
  s.training.global_batch = 2;
  s.strategy.sequence_parallel = sequence;
  s.strategy.tensor_overlap = mode;
  s.engine.protocol = Protocol::ideal;
  s.cluster = make_cluster(star(4, gbps / 8 * 1e9));
  return s;
}

struct Simulated {
  Plan plan;
  std::vector<double> begin_s, end_s;  // by op of rank 0
  double time_s(std::size_t op) const { return end_s[op] - begin_s[op]; }
  const std::vector<Op>& ops() const { return plan.schedule->programs.front().ops; }
  double step_s() const { return *std::max_element(end_s.begin(), end_s.end()); }
};

Simulated simulate(const Scenario& s) {
  Simulated result;
  result.plan = write_schedule(s);
  result.begin_s.resize(result.ops().size());
  result.end_s.resize(result.ops().size());
  const Trace trace =
      simulate_in_child(one_job(*result.plan.schedule, result.plan.endpoints), *s.cluster, s.engine);
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const std::vector<int>& ranks = trace.classes[trace.spans.rank_class[i]].ranks;
    if (std::find(ranks.begin(), ranks.end(), 0) == ranks.end()) continue;
    result.begin_s[trace.spans.op[i]] = trace.spans.begin_s[i];
    result.end_s[trace.spans.op[i]] = trace.spans.end_s[i];
  }
  return result;
}

}  // namespace

TEST_CASE("beside a sum of gradients the smaller of it and the gradient of weights is hidden") {
  for (const double gbps : {5.0, 100.0, 3200.0}) {
    CAPTURE(gbps);
    const Simulated plain = simulate(sharing(TensorOverlap::none, false, gbps));
    const Simulated beside = simulate(sharing(TensorOverlap::weight_gradients, false, gbps));
    double hidden_s = 0;
    for (std::size_t i = 0; i < beside.ops().size(); ++i)
      if (beside.ops()[i].purpose == Purpose::tensor && beside.ops()[i].action.of_gradient)
        hidden_s += std::min(beside.time_s(i), beside.time_s(i + 1));
    CHECK(hidden_s > 0);
    CHECK(beside.step_s() == Approx(plain.step_s() - hidden_s).epsilon(1e-9));
  }
}

TEST_CASE("n chunks of a gather and a product take one of each and n - 1 of the slower") {
  for (const double gbps : {5.0, 100.0, 3200.0}) {
    CAPTURE(gbps);
    const Simulated run = simulate(sharing(TensorOverlap::chunks, true, gbps));
    int checked = 0;
    for (std::size_t i = 0; i < run.ops().size(); ++i) {
      if (run.ops()[i].kind != OpKind::collective ||
          run.ops()[i].collective.kind != CollectiveKind::all_gather ||
          run.ops()[i].name.find("chunk 1 of 4") == std::string::npos)
        continue;
      // Gathers and products alternate.
      const std::size_t last = i + 7;
      CAPTURE(run.ops()[i].name, run.ops()[last].name);
      const double gather_s = run.time_s(i), product_s = run.time_s(i + 1);
      CHECK(run.end_s[last] - run.begin_s[i] ==
            Approx(gather_s + 3 * std::max(gather_s, product_s) + product_s).epsilon(1e-9));
      ++checked;
    }
    CHECK(checked == 2 * 2 + 2 * 2);  // a layer has two forward and two backward
  }
}

TEST_CASE("without a pipeline a pass takes turns with that of the next micro-batch") {
  const auto plan = [](bool turns, int microbatches) {
    Scenario s = test::axes_scenario(test::axes_mixture(8), {4, 1, 1, 1});
    s.strategy.expert = 4;
    s.microbatches = microbatches;
    s.training.global_batch = 2.0 * microbatches * 4;
    s.strategy.overlap_passes = turns;
    s.engine.protocol = Protocol::ideal;
    s.cluster = make_cluster(star(4, 100 / 8 * 1e9));
    return s;
  };
  // The cost of one more micro-batch: the sum of its computation and its all-to-alls, or little more than the
  // longer of the two.
  const Simulated run = simulate(plan(false, 2));
  double computing_s = 0, communicating_s = 0;
  for (std::size_t i = 0; i < run.ops().size(); ++i) {
    if (run.ops()[i].microbatch != 0) continue;  // in the last one, the gradient sum runs in parallel
    (run.ops()[i].purpose == Purpose::experts ? communicating_s : computing_s) += run.time_s(i);
  }
  const auto one_more_s = [&](bool turns) {
    return simulate(plan(turns, 9)).step_s() - simulate(plan(turns, 8)).step_s();
  };
  CAPTURE(computing_s, communicating_s);
  CHECK(one_more_s(false) == Approx(computing_s + communicating_s).epsilon(1e-6));
  CHECK(one_more_s(true) > (1 - 1e-9) * std::max(computing_s, communicating_s));
  CHECK(one_more_s(true) < computing_s + communicating_s - 0.5 * std::min(computing_s, communicating_s));
}

TEST_CASE("passes that take turns hide the smaller of computation and communication") {
  // All-to-alls of experts overlap with computation, in a pipeline whose stages do the same.
  const auto plan = [](bool turns) {
    Scenario s = test::axes_scenario(test::axes_mixture(8), {4, 1, 1, 2});
    s.strategy.expert = 4;
    s.strategy.expert_tensor = 1;
    s.strategy.schedule = PipelineSchedule::dualpipe_v;
    s.strategy.virtual_stages = 2;
    s.microbatches = 16;
    s.training.global_batch = 2.0 * 16 * 4;
    s.strategy.overlap_passes = turns;
    s.engine.protocol = Protocol::ideal;
    s.cluster = make_cluster(star(8, 100 / 8 * 1e9));
    return s;
  };
  const Simulated plain = simulate(plan(false)), turns = simulate(plan(true));
  const auto total = [](const Simulated& run, bool compute) {
    double sum_s = 0;
    for (std::size_t i = 0; i < run.ops().size(); ++i) {
      const Op& op = run.ops()[i];
      if (op.microbatch >= 0 && (compute ? op.kind == OpKind::compute : op.purpose == Purpose::experts))
        sum_s += run.time_s(i);
    }
    return sum_s;
  };
  const double computing_s = total(plain, true), communicating_s = total(plain, false);
  CAPTURE(plain.step_s(), turns.step_s(), computing_s, communicating_s);
  // No rank can be faster than the longer of the two. The pipeline's ramp-up and ramp-down and the last
  // weight gradients hide nothing.
  CHECK(turns.step_s() < plain.step_s() - 0.5 * std::min(computing_s, communicating_s));
  CHECK(turns.step_s() > std::max(computing_s, communicating_s));
}
