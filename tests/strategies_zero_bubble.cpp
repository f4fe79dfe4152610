// Checks pipelines with split backward passes, and breadth-first ones: orders, transfers, memory of the
// stages, and that no work is lost.
#include <algorithm>
#include <map>
#include <set>

#include "models/text/error.hpp"
#include "simulator/strategies/orders/order.hpp"
#include "tests/catch.hpp"
#include "tests/strategies_scenarios.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

constexpr PipelineSchedule kSchedules[] = {PipelineSchedule::zb_h1, PipelineSchedule::zb_h2,
                                           PipelineSchedule::zb_v, PipelineSchedule::breadth_first,
                                           PipelineSchedule::dualpipe_v};

Scenario with_schedule(Scenario s, PipelineSchedule schedule) {
  s.strategy.schedule = schedule;
  s.strategy.virtual_stages = order_of(schedule).fewest_chunks;
  return s;
}

// Returns a pass as text: "F0", "B0" and "W0" are passes of micro-batch 0, "D0" is a backward pass that is
// not split; "f0", "b0", "w0" and "d0" are those of chunk 1.
std::string item_text(const PassItem& item) {
  const std::map<Pass, std::string> letters = {
      {Pass::forward, "F"}, {Pass::backward, "D"}, {Pass::backward_input, "B"}, {Pass::backward_weight, "W"}};
  std::string letter = letters.at(item.pass);
  if (item.chunk == 1) letter[0] = static_cast<char>(letter[0] - 'A' + 'a');
  return letter + std::to_string(item.microbatch);
}

std::string table(PipelineSchedule schedule, int stages, int microbatches) {
  std::string text;
  for (int s = 0; s < stages; ++s) {
    for (const PassItem& item :
         pipeline_order(schedule, {stages, s, microbatches, order_of(schedule).fewest_chunks}))
      text += " " + item_text(item);
    text += "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("orders of split backward passes") {
  // Figure 2 of arXiv 2401.10241, counted from 0: four stages, eight micro-batches.
  CHECK(table(PipelineSchedule::zb_h1, 4, 8) ==
        " F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7\n"
        " F0 F1 F2 B0 F3 B1 W0 F4 B2 W1 F5 B3 W2 F6 B4 W3 F7 B5 W4 B6 W5 B7 W6 W7\n"
        " F0 F1 B0 F2 B1 F3 B2 W0 F4 B3 W1 F5 B4 W2 F6 B5 W3 F7 B6 W4 B7 W5 W6 W7\n"
        " F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 W6 W7\n");
  // Figure 3.
  CHECK(table(PipelineSchedule::zb_h2, 4, 8) ==
        " F0 F1 F2 F3 F4 F5 F6 B0 W0 F7 B1 W1 B2 W2 B3 W3 B4 W4 B5 W5 B6 W6 B7 W7\n"
        " F0 F1 F2 F3 F4 B0 F5 B1 F6 B2 W0 F7 B3 W1 B4 W2 B5 W3 B6 W4 B7 W5 W6 W7\n"
        " F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 W0 F7 B5 W1 B6 W2 B7 W3 W4 W5 W6 W7\n"
        " F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 W0 F7 B7 W1 W2 W3 W4 W5 W6 W7\n");
  // Section 6 of the same paper, for two stages.
  CHECK(table(PipelineSchedule::zb_v, 2, 4) ==
        " F0 F1 F2 f0 b0 w0 f1 b1 w1 F3 B0 W0 f2 b2 w2 B1 W1 f3 b3 w3 B2 W2 B3 W3\n"
        " F0 f0 F1 f1 b0 w0 F2 B0 W0 f2 b1 w1 F3 B1 W1 f3 b2 w2 B2 b3 B3 W2 w3 W3\n");
  CHECK(table(PipelineSchedule::breadth_first, 2, 3) ==
        " F0 F1 F2 f0 f1 f2 d0 d1 d2 D0 D1 D2\n F0 F1 F2 f0 f1 f2 d0 d1 d2 D0 D1 D2\n");
  // The steps of DualPipe's dualpipev.py for two ranks: nF0, nF0F1, nB1W1F1, nF0B1F1B0, nB1F1B0, nB1B0, nWB0,
  // nW.
  CHECK(table(PipelineSchedule::dualpipe_v, 2, 4) ==
        " F0 F1 F2 f0 b0 w0 f1 F3 d1 f2 D0 d2 f3 D1 d3 B2 W2 B3 W3\n"
        " F0 f0 F1 f1 F2 d0 f2 D0 F3 d1 f3 D1 d2 D2 b3 B3 w3 W3\n");
}

TEST_CASE("every pass runs once, and the halves of a backward pass in their order") {
  for (const PipelineSchedule schedule : kSchedules)
    for (const int p : {2, 3, 4, 8})
      for (const int m : {1, 2, 3, 7, 8, 33})
        for (int stage = 0; stage < p; ++stage) {
          CAPTURE(static_cast<int>(schedule), p, m, stage);
          const OrderEntry& entry = order_of(schedule);
          const int chunks = entry.fewest_chunks;
          std::map<std::pair<int, int>, std::vector<Pass>> seen;  // by micro-batch and chunk
          for (const PassItem& item : pipeline_order(schedule, {p, stage, m, chunks}))
            seen[{item.microbatch, item.chunk}].push_back(item.pass);
          REQUIRE(seen.size() == static_cast<std::size_t>(m * chunks));
          const std::vector<Pass> split = {Pass::forward, Pass::backward_input, Pass::backward_weight},
                                  whole = {Pass::forward, Pass::backward};
          for (const auto& [item, passes] : seen) {
            if (schedule == PipelineSchedule::dualpipe_v)  // splits only some backward passes
              CHECK((passes == split || passes == whole));
            else
              CHECK(passes == (entry.splits_backward ? split : whole));
          }
        }
}

TEST_CASE("parts lie there and back") {
  for (const int p : {2, 3, 8}) {
    std::set<int> parts;
    for (int stage = 0; stage < p; ++stage)
      for (const int chunk : {0, 1}) {
        const int part = part_of(PartPlacement::vee, p, stage, chunk);
        CHECK(part == (chunk == 0 ? stage : 2 * p - 1 - stage));
        CHECK(stage_of_part(PartPlacement::vee, p, part) == stage);
        parts.insert(part);
      }
    CHECK(parts.size() == static_cast<std::size_t>(2 * p));
  }
}

TEST_CASE("every combination with split backward passes writes a sound schedule that loses no work") {
  for (const PipelineSchedule schedule : kSchedules)
    for (const int servers : {0, 2})
      for (const bool overlap : {true, false})
        for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full})
          for (const int pipeline : {2, 4})
            for (const int data : {1, 3})
              for (const int microbatches : {1, 3, 8}) {
                Scenario s =
                    with_schedule(scenario(small_gpt(14), data, pipeline, microbatches, servers), schedule);
                s.training.recompute = recompute;
                s.strategy.overlap = overlap;
                s.strategy.bucket_bytes = 4 * 1048576.0;
                CAPTURE(static_cast<int>(schedule), servers, overlap, static_cast<int>(recompute), pipeline,
                        data, microbatches);
                const Plan plan = write_schedule(s);
                REQUIRE_NOTHROW(check(*plan.schedule));
                double flops = 0;
                for (const Program& program : plan.schedule->programs)
                  for (const Op& op : program.ops)
                    if (op.kind == OpKind::compute) flops += plan.schedule->works[op.work].model_flops;
                REQUIRE(flops ==
                        Approx(flops_per_sample(s.model, 0) * plan.schedule->samples / data).epsilon(1e-9));
              }
}

TEST_CASE("split backward passes with tensor and sequence parallelism send what whole ones send") {
  const auto bytes = [](PipelineSchedule schedule, bool sequence, Recompute recompute) {
    Scenario s = with_schedule(scenario(small_gpt(14), 2, 2, 4), schedule);
    s.strategy.tensor = 2;
    s.strategy.sequence_parallel = sequence;
    s.strategy.placement = {"tensor", "data", "pipeline"};
    s.cluster = cluster(8);
    s.training.recompute = recompute;
    const Plan plan = write_schedule(s);
    check(*plan.schedule);
    std::map<CollectiveKind, double> sum;
    for (const Program& program : plan.schedule->programs)
      for (const Op& op : program.ops)
        if (op.kind == OpKind::collective && op.pass != Pass::gradient_sync)
          sum[op.collective.kind] += op.collective.bytes.base;
    return sum;
  };
  for (const bool sequence : {false, true})
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      const auto whole = bytes(PipelineSchedule::one_f_one_b, sequence, recompute);
      CHECK_FALSE(whole.empty());
      for (const PipelineSchedule schedule : {PipelineSchedule::zb_h1, PipelineSchedule::zb_h2}) {
        CAPTURE(sequence, static_cast<int>(recompute), static_cast<int>(schedule));
        const auto split = bytes(schedule, sequence, recompute);
        REQUIRE(split.size() == whole.size());
        for (const auto& [kind, sent] : whole) CHECK(split.at(kind) == Approx(sent).epsilon(1e-12));
      }
    }
}

TEST_CASE("each stage keeps the activations that the paper counts, until their weight part") {
  // Table 1 of arXiv 2401.10241: p micro-batches, 2p - 1, and p micro-batches of two chunks each. README of
  // DualPipe: one more than the number of parts of the model.
  for (const int p : {2, 4})
    for (const PipelineSchedule schedule : kSchedules) {
      const int m = 3 * p;
      const Plan plan = write_schedule(with_schedule(scenario(perceptron(16), 1, p, m), schedule));
      for (int stage = 0; stage < p; ++stage) {
        CAPTURE(p, static_cast<int>(schedule), stage);
        const Program& program = plan.schedule->programs[stage];
        std::set<int> alive;
        std::size_t most = 0;
        for (const Op& op : program.ops) {
          if (op.kind != OpKind::compute) continue;
          if (op.pass == Pass::forward) alive.insert(op.writes.front());
          most = std::max(most, alive.size());
          const bool frees = op.pass == Pass::backward || op.pass == Pass::backward_weight;
          for (const int t : op.reads)
            if (frees && program.tensors[t].kind == TensorKind::activation) alive.erase(t);
        }
        CHECK(alive.empty());
        const int expected = schedule == PipelineSchedule::zb_h1        ? p
                             : schedule == PipelineSchedule::zb_h2      ? 2 * p - 1
                             : schedule == PipelineSchedule::zb_v       ? 2 * p
                             : schedule == PipelineSchedule::dualpipe_v ? 2 * p + 1
                                                                        : 2 * m;
        CHECK(most == static_cast<std::size_t>(expected));
      }
    }
}

TEST_CASE("a weight part reads what the input part kept") {
  const Plan plan = write_schedule(with_schedule(scenario(perceptron(8), 1, 2, 4), PipelineSchedule::zb_h1));
  const Program& program = plan.schedule->programs[1];
  // For each of four layers, the gradient of the product's output: two samples of 1024 values of four bytes.
  double kept = 0;
  for (const Tensor& tensor : program.tensors)
    if (tensor.name == "gradients for weights 2") kept = tensor.bytes.base;
  CHECK(kept == 4 * 2 * 1024.0 * 4);
  for (const Op& op : program.ops) {
    if (op.pass != Pass::backward_weight) continue;
    std::set<std::string> read;
    for (const int t : op.reads) read.insert(program.tensors[t].name);
    CHECK(read == std::set<std::string>{"activations " + std::to_string(op.microbatch),
                                        "gradients for weights " + std::to_string(op.microbatch)});
    for (const int t : op.writes) CHECK(program.tensors[t].kind == TensorKind::gradient);
  }
}

TEST_CASE("in a vee the last stage hands over to itself, and the first one has both ends") {
  const Plan plan = write_schedule(with_schedule(scenario(perceptron(12), 1, 3, 6), PipelineSchedule::zb_v));
  const double boundary = 2 * 1024.0 * 4;  // two samples of 1024 values of four bytes
  // For each micro-batch, a stage sends two tensors to each neighbour: one forward, one backward.
  CHECK(bytes_sent(*plan.schedule, 0, 0) == 6 * 2 * boundary);
  CHECK(bytes_sent(*plan.schedule, 0, 1) == 6 * 4 * boundary);
  CHECK(bytes_sent(*plan.schedule, 0, 2) == 6 * 2 * boundary);
  const int first[3][2] = {{0, 10}, {2, 8}, {4, 6}};
  for (int stage = 0; stage < 3; ++stage)
    for (const Op& op : plan.schedule->programs[stage].ops) {
      if (op.kind == OpKind::compute && op.pass == Pass::forward)
        CHECK((op.first_layer == first[stage][0] || op.first_layer == first[stage][1]));
      for (const Message& message : op.messages)
        for (const int peer : peer_ranks(plan.schedule->roles, 0, message.peer, stage))
          CHECK(std::abs(peer - stage) == 1);
    }
  // No op sums a tied embedding's gradients, since one stage has both uses.
  const Plan tied = write_schedule(with_schedule(scenario(small_gpt(10), 1, 3, 6), PipelineSchedule::zb_v));
  for (const Program& program : tied.schedule->programs)
    for (const Op& op : program.ops) CHECK(op.name != "all-reduce tied embedding");
}

TEST_CASE("a bucket leaves behind the weight part that completes it") {
  Scenario s = with_schedule(scenario(perceptron(12), 3, 2, 4), PipelineSchedule::zb_h2);
  s.strategy.bucket_bytes = 8 * 1048576.0;
  const Plan plan = write_schedule(s);
  for (const Program& program : plan.schedule->programs) {
    int sent = 0;
    for (const Op& op : program.ops) {
      if (op.kind != OpKind::collective) continue;
      ++sent;
      REQUIRE(op.after.size() == 1);
      const Op& ready = program.ops[op.after[0].op];
      CHECK(ready.pass == Pass::backward_weight);
      CHECK(ready.microbatch == 3);
      CHECK(ready.first_layer == op.first_layer);
      CHECK(ready.last_layer == op.last_layer);
    }
    CHECK(sent > 1);
    CHECK(count_ops(program, OpKind::compute, Pass::backward_input) == 4);
    CHECK(count_ops(program, OpKind::compute, Pass::backward_weight) == 3 + sent);
  }
}

TEST_CASE("what a schedule cannot have is refused") {
  struct Case {
    PipelineSchedule schedule;
    int pipeline, chunks;
    bool blocking;
    std::string said;
  };
  using enum PipelineSchedule;
  const Case cases[] = {
      {zb_h1, 2, 2, false, "strategy.virtual_stages is 2 with schedule = \"zb-h1\"; allowed: 1"},
      {zb_v, 2, 3, false, "strategy.virtual_stages is 3 with schedule = \"zb-v\"; allowed: 2"},
      {zb_v, 2, 1, false, "with pipeline 2 and virtual_stages 1; allowed: at least 2 and 2"},
      {zb_h2, 1, 1, false, "with pipeline 1 and virtual_stages 1; allowed: at least 2 and 1"},
      {breadth_first, 2, 1, false, "allowed: at least 2 and 2"},
      {zb_h1, 2, 1, true, "strategy.blocking_p2p is true with schedule = \"zb-h1\""},
      {breadth_first, 2, 2, true, "strategy.blocking_p2p is true with schedule = \"breadth-first\""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.said);
    Scenario s = scenario(perceptron(8), 1, c.pipeline, 2);
    s.strategy.schedule = c.schedule;
    s.strategy.virtual_stages = c.chunks;
    s.strategy.blocking_p2p = c.blocking;
    const std::string said = refusal_of(s);
    CAPTURE(said);
    CHECK(said.find(c.said) != std::string::npos);
  }
}
