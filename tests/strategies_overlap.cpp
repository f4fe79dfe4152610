// Checks the overlap of layers' communication with computation (simulator/strategies/programs/overlap.hpp):
// what is computed and sent does not change.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulator/strategies/orders/pass_pairs.hpp"
#include "tests/catch.hpp"
#include "tests/strategies_axes.hpp"

namespace rehearse {
namespace {

Scenario overlapping(const char* name, TensorOverlap mode, bool passes) {
  Scenario s = test::axes_scenario(test::axes_gpt(8), {1, 1, 4, 2});
  const std::string which = name;
  if (which == "sequence") s.strategy.sequence_parallel = true;
  if (which == "recomputed") {
    s.strategy.sequence_parallel = true;
    s.training.recompute = Recompute::full;
  }
  if (which == "context") {
    s = test::axes_scenario(test::axes_gpt(8), {1, 2, 2, 2});
    s.strategy.sequence_parallel = true;
  }
  if (which == "experts") {
    s = test::axes_scenario(test::axes_mixture(8), {4, 1, 2, 2});
    s.strategy.sequence_parallel = true;
    s.strategy.expert = 4;
    s.strategy.expert_tensor = 1;
  }
  if (which == "zb-h1") s.strategy.schedule = PipelineSchedule::zb_h1;
  if (which == "dualpipe-v") {
    s.strategy.schedule = PipelineSchedule::dualpipe_v;
    s.strategy.virtual_stages = 2;
  }
  if (which == "interleaved") {
    s.strategy.schedule = PipelineSchedule::interleaved;
    s.strategy.virtual_stages = 2;
  }
  s.strategy.tensor_overlap = mode;
  s.strategy.overlap_passes = passes;
  return s;
}

struct Totals {
  double model_flops = 0, extra_flops = 0;
  std::map<Purpose, double> bytes;
};

Totals totals(const Schedule& schedule) {
  Totals sum;
  for (const Program& program : schedule.programs)
    for (const Op& op : program.ops) {
      if (op.work >= 0) {
        sum.model_flops += schedule.works[op.work].model_flops;
        sum.extra_flops += schedule.works[op.work].extra_flops;
      }
      if (op.kind == OpKind::collective) sum.bytes[op.purpose] += op.collective.bytes.base;
      for (const Message& message : op.messages) sum.bytes[op.purpose] += message.bytes.base;
    }
  return sum;
}

constexpr const char* kPlans[] = {"tensor",  "sequence", "recomputed", "context",
                                  "experts", "zb-h1",    "dualpipe-v", "interleaved"};

TEST_CASE("what runs beside communication changes neither work nor bytes") {
  for (const char* name : kPlans) {
    const Totals plain = totals(*write_schedule(overlapping(name, TensorOverlap::none, false)).schedule);
    for (const TensorOverlap mode :
         {TensorOverlap::none, TensorOverlap::weight_gradients, TensorOverlap::chunks})
      for (const bool passes : {false, true}) {
        CAPTURE(name, static_cast<int>(mode), passes);
        const Plan plan = write_schedule(overlapping(name, mode, passes));
        check(*plan.schedule);  // no race, no cycle, collectives in the same order on all ranks
        const Totals here = totals(*plan.schedule);
        CHECK(here.model_flops == Approx(plain.model_flops).epsilon(1e-12));
        CHECK(here.extra_flops == Approx(plain.extra_flops).epsilon(1e-12));
        REQUIRE(here.bytes.size() == plain.bytes.size());
        for (const auto& [purpose, bytes] : plain.bytes)
          CHECK(here.bytes.at(purpose) == Approx(bytes).epsilon(1e-12));
      }
  }
}

TEST_CASE("the gradient of a product's weights stands beside the sum of its input's") {
  const Plan plan = write_schedule(overlapping("tensor", TensorOverlap::weight_gradients, false));
  const Program& program = plan.schedule->programs.front();
  int sums = 0;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& sum = program.ops[i];
    if (sum.purpose != Purpose::tensor || !sum.action.of_gradient) continue;
    ++sums;
    CAPTURE(sum.name);
    CHECK(program.streams[sum.stream] == "layers");
    const Op &input = program.ops[i - 1], &weight = program.ops[i + 1];
    CHECK(input.pass == Pass::backward_input);
    CHECK(weight.pass == Pass::backward_weight);
    CHECK(input.action.first_segment == weight.action.first_segment);
    CHECK(input.action.end_segment == weight.action.end_segment);
    // The sum waits for the input's gradient, and the weights' gradient after it does not wait for the sum.
    CHECK(sum.after == std::vector<Dependency>{{static_cast<int>(i) - 1}});
    for (const Dependency& on : weight.after) CHECK(on.op != static_cast<int>(i));
  }
  // Two in each of a stage's 4 layers (Shoeybi et al. 2019, figure 3), for each of 4 micro-batches.
  CHECK(sums == 4 * 2 * 4);
}

TEST_CASE("a product goes in as many chunks as its gather and its sum") {
  const Plan plan = write_schedule(overlapping("sequence", TensorOverlap::chunks, false));
  const Program& program = plan.schedule->programs.front();
  std::map<std::pair<OpKind, Pass>, int> in_chunks;
  for (const Op& op : program.ops)
    if (op.name.find("chunk 1 of 4") != std::string::npos) ++in_chunks[{op.kind, op.pass}];
  // A layer gathers twice and scatters twice in a forward pass, each in chunks together with its product; in
  // the backward pass, the two gathers of outputs' gradients are chunked. Stage 0 of 2 has 4 layers.
  CHECK(in_chunks[{OpKind::collective, Pass::forward}] == 4 * 4 * 4);
  CHECK(in_chunks[{OpKind::compute, Pass::forward}] == 4 * 4 * 4);
  CHECK(in_chunks[{OpKind::collective, Pass::backward}] == 4 * 4 * 2);
  CHECK(in_chunks[{OpKind::compute, Pass::backward_input}] == 4 * 4 * 2);
}

TEST_CASE("passes that take turns") {
  struct Case {
    PipelineSchedule schedule;
    int chunks;
    std::vector<int> pairs;  // by stage; 8 micro-batches
  };
  const Case cases[] = {
      // The first backward pass depends, through the later stages, on the last forward pass before it, except
      // on the last stage.
      {PipelineSchedule::gpipe, 1, {0, 0, 0, 1}},
      // Stage s runs 3 - s forward passes ahead, which leaves 5 + s pairs; those of the last stage do not
      // count, since both passes belong to the same micro-batch.
      {PipelineSchedule::one_f_one_b, 1, {5, 6, 7, 0}},
      // Without a pipeline, one forward pass runs ahead.
      {PipelineSchedule::one_f_one_b, 1, {7}},
      // Of 16 forward passes, 2 (3 - s) + 4 + 1 run ahead, and each of the others has a partner, also on the
      // last stage.
      {PipelineSchedule::interleaved, 2, {5, 7, 9, 11}},
  };
  for (const Case& c : cases) {
    CAPTURE(static_cast<int>(c.schedule));
    const auto pairs = pass_pairs(c.schedule, {static_cast<int>(c.pairs.size()), 0, 8, c.chunks});
    REQUIRE(pairs.size() == c.pairs.size());
    for (std::size_t s = 0; s < pairs.size(); ++s)
      CHECK(std::count(pairs[s].begin(), pairs[s].end(), true) == c.pairs[s]);
  }
  // DualPipeV's published code overlaps two pairs in each of m - 2p + s + 1 steady-state iterations, and one
  // in each of the p - 1 - s iterations after them. There can be more pairs while the pipeline fills.
  for (const int m : {8, 12}) {
    const auto pairs = pass_pairs(PipelineSchedule::dualpipe_v, {4, 0, m, 2});
    for (int s = 0; s < 4; ++s) {
      CAPTURE(m, s);
      CHECK(std::count(pairs[s].begin(), pairs[s].end(), true) >= 2 * (m - 8 + s + 1) + 3 - s);
    }
  }
}

// Returns the names of compute ops in program order, grouped by direction and micro-batch.
std::map<std::string, std::vector<std::string>> by_pass(const Program& program) {
  std::map<std::string, std::vector<std::string>> passes;
  for (const Op& op : program.ops)
    if (op.kind == OpKind::compute && op.microbatch >= 0)
      passes[(op.pass == Pass::forward ? "forward " : "backward ") + std::to_string(op.microbatch)].push_back(
          op.name);
  return passes;
}

TEST_CASE("a forward and a backward pass take turns, each in its own order") {
  const Plan plain = write_schedule(overlapping("experts", TensorOverlap::none, false));
  const Plan turns = write_schedule(overlapping("experts", TensorOverlap::none, true));
  for (std::size_t p = 0; p < plain.schedule->programs.size(); ++p) {
    const Program &before = plain.schedule->programs[p], &after = turns.schedule->programs[p];
    CHECK(by_pass(before) == by_pass(after));
    int changes = 0;  // of direction between consecutive computations
    const Op* last = nullptr;
    for (const Op& op : after.ops) {
      if (op.kind != OpKind::compute || op.microbatch < 0) continue;
      if (last && (last->pass == Pass::forward) != (op.pass == Pass::forward)) ++changes;
      last = &op;
    }
    // With 1F1B on 2 stages and 4 micro-batches, stage 0 has 3 pairs of a forward and a backward pass of
    // different micro-batches, stage 1 has none.
    CAPTURE(p, changes);
    CHECK((p == 0 ? changes > 3 * 10 : changes == 7));
  }
}

}  // namespace
}  // namespace rehearse
