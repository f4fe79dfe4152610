// Compares what ZeRO and FSDP send and store with the tables of Rajbhandari et al. 2020 ("ZeRO", figure 1 and
// section 7) and Zhao et al. 2023 ("PyTorch FSDP").
#include <map>
#include <set>

#include "models/text/document.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "tests/catch.hpp"
#include "tests/sanitized.hpp"
#include "tests/strategies_scenarios.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

constexpr double kLayer = 1024.0 * 1025;  // parameters of a layer of perceptron()

Scenario sharded(Scenario s, const std::string& keys) {
  Document document = Document::parse_text(keys, "test");
  Section section = document.root();
  s.strategy.gradient_strategy = find_gradient_strategy("all-reduce")->read(section, s.strategy);
  section.finish();
  return s;
}

// Returns the bytes that a rank sends in collectives: Thakur et al. (2005).
double wire_bytes(const Schedule& schedule, const Program& program) {
  double bytes = 0;
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::collective) continue;
    const double n = group_size(schedule.roles[0], op.collective.group);
    const double factor = op.collective.kind == CollectiveKind::all_reduce ? 2 : 1;
    bytes += factor * (n - 1) / n * op.collective.bytes.base;
  }
  return bytes;
}

double held_bytes(const Program& program) {
  double bytes = 0;
  for (const rehearse::Tensor& tensor : program.tensors)
    if (tensor.persistent()) bytes += tensor.bytes.base;
  return bytes;
}

}  // namespace

TEST_CASE("shards: bytes on the wire in a step") {
  struct Case {
    const char* keys;
    int microbatches;
    // In units of the bytes of the gradients, which equal those of the weights: (n - 1) / n of it is sent
    // within the ranks that share shards, (r - 1) / r of it over the replicas of a shard.
    double within, over;
    int shards = 8;
  };
  const Case cases[] = {
      {"zero_stage = 1", 1, 2, 0},
      {"zero_stage = 1", 4, 2, 0},
      {"zero_stage = 1\noverlap = false", 4, 2, 0},
      {"zero_stage = 1\nprefetch = 0", 4, 2, 0},
      // Gradients are reduced after each micro-batch.
      {"zero_stage = 2", 1, 2, 0},
      {"zero_stage = 2", 4, 4 + 1, 0},
      // Weights are gathered before each pass, forward and backward.
      {"zero_stage = 3", 1, 3, 0},
      {"zero_stage = 3", 4, 2 * 4 + 4, 0},
      {"fsdp = \"full\"\nprefetch = 3", 4, 2 * 4 + 4, 0},
      {"fsdp = \"full\"\nreshard_after_forward = false", 4, 4 + 4, 0},
      // An all-reduce of a shard's gradients once per step.
      {"fsdp = \"hybrid\"\nshard_degree = 4", 4, 2 * 4 + 4, 2.0 / 4, 4},
      {"fsdp = \"hybrid\"\nshard_degree = 2\nreshard_after_forward = false", 1, 1 + 1, 2.0 / 2, 2},
      {"fsdp = \"hybrid\"\nshard_degree = 1", 4, 0, 2, 1},
      {"fsdp = \"hybrid\"\nshard_degree = 8", 2, 2 * 2 + 2, 0, 8},
  };
  for (const int pipeline : {1, 2})
    for (const Case& c : cases) {
      CAPTURE(c.keys, c.microbatches, pipeline);
      Scenario s = scenario(perceptron(4), 8, pipeline, c.microbatches);
      s.strategy.overlap = std::string(c.keys).find("overlap = false") == std::string::npos;
      const std::string keys = s.strategy.overlap ? c.keys : "zero_stage = 1";
      s.strategy.bucket_bytes = s.strategy.first_bucket_bytes = 4 * 1048576.0;
      const Plan plan = write_schedule(sharded(s, keys));
      REQUIRE_NOTHROW(check(*plan.schedule));
      const double n = c.shards, r = 8.0 / c.shards, gradients = 4 * 4 * kLayer / pipeline;
      // In a pipeline of two stages, a unit that is kept between passes is gathered once for all
      // micro-batches in flight. On the last stage, one micro-batch follows the other, so it gathers as often
      // as without a pipeline.
      const Program& last = plan.schedule->programs.back();
      CHECK(wire_bytes(*plan.schedule, last) ==
            Approx((c.within * (n - 1) / n + c.over * (r - 1) / r) * gradients).epsilon(1e-12));
    }
}

TEST_CASE("shards: what is held of each parameter") {
  // ZeRO, figure 1: mixed precision with Adam, 7.5 billion parameters on 64 ranks: 120, 31.4, 16.6 and 1.9
  // GB.
  struct Case {
    const char* keys;
    double bytes;      // per parameter
    double published;  // GB for 7.5 billion parameters; 0: not published
  };
  const double n = 64;
  const Case cases[] = {
      {"", 2 + 2 + 12, 120},
      {"zero_stage = 1", 2 + 2 + 12 / n, 31.4},
      {"zero_stage = 2", 2 + (2 + 12) / n, 16.6},
      {"zero_stage = 3", (2 + 2 + 12) / n, 1.9},
      {"fsdp = \"full\"", 16 / n, 1.9},
      {"fsdp = \"hybrid\"\nshard_degree = 8", 16.0 / 8, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.keys);
    Scenario s = scenario(perceptron(4), 64, 1, 1);
    s.training.precision = s.training.gradient_precision = s.training.activation_precision = Precision::fp16;
    const Plan plan = write_schedule(sharded(s, c.keys));
    const double each = held_bytes(plan.schedule->programs[0]) / (4 * kLayer);
    CHECK(each == Approx(c.bytes).epsilon(1e-12));
    if (c.published > 0) CHECK(each * 7.5 == Approx(c.published).margin(0.05));
    // Updates are sharded like the optimizer's state.
    const double updated = c.keys[0] == '\0' ? 4 * kLayer : 4 * kLayer / (c.bytes == 2 ? 8 : n);
    for (const Op& op : plan.schedule->programs[0].ops)
      if (op.action.kind == Action::Kind::update)
        CHECK(plan.schedule->works[op.work].parameters_updated == Approx(updated));
  }
}

TEST_CASE("shards: weights are gathered no further ahead than told, and gradients sent before the next") {
  for (const int prefetch : {0, 1, 2})
    for (const bool reshard : {true, false}) {
      CAPTURE(prefetch, reshard);
      const Plan plan = write_schedule(sharded(
          scenario(perceptron(6), 4, 1, 2), "zero_stage = 3\nprefetch = " + std::to_string(prefetch) +
                                                "\nreshard_after_forward = " + (reshard ? "true" : "false")));
      const Program& program = plan.schedule->programs[0];
      std::vector<int> passes;          // compute ops in order
      std::map<int, int> gathered_for;  // tensor: the gather that writes it
      for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
        const Op& op = program.ops[i];
        if (op.action.kind == Action::Kind::gather_weights) gathered_for[op.writes.front()] = i;
        if (op.action.kind == Action::Kind::forward || op.action.kind == Action::Kind::backward)
          passes.push_back(i);
      }
      REQUIRE(passes.size() == 2U * 2 * 6);
      CHECK(gathered_for.size() == (reshard ? 2U * 2 * 6 : 2U * 6));
      std::set<int> seen;
      for (std::size_t p = 0; p < passes.size(); ++p) {
        const Op& pass = program.ops[passes[p]];
        int gather = -1;
        for (const int tensor : pass.reads)
          if (gathered_for.count(tensor) > 0) gather = gathered_for.at(tensor);
        REQUIRE(gather >= 0);  // no pass reads the shards themselves
        if (!seen.insert(gather).second) continue;
        const bool waits = std::any_of(pass.after.begin(), pass.after.end(),
                                       [&](const Dependency& d) { return d.op == gather; });
        CHECK(waits);
        // The gather must wait for pass p - 1 - prefetch.
        const int over = static_cast<int>(p) - 1 - prefetch;
        int after = -1;
        for (const Dependency& d : program.ops[gather].after)
          if (d.steps_back == 0) after = d.op;
        CHECK(after == (over < 0 ? -1 : passes[static_cast<std::size_t>(over)]));
      }
      // The first gather of a step reads what the optimizer wrote.
      const Op& first = program.ops[gathered_for.begin()->second];
      const bool updated = std::any_of(first.after.begin(), first.after.end(), [&](const Dependency& d) {
        return d.steps_back == 1 && program.ops[d.op].action.kind == Action::Kind::update;
      });
      CHECK(updated);
    }
}

TEST_CASE("shards: every combination writes a sound schedule") {
  for (const char* keys :
       {"zero_stage = 1", "zero_stage = 2", "zero_stage = 3", "zero_stage = 1\nprefetch = 0",
        "fsdp = \"full\"\nreshard_after_forward = false", "fsdp = \"hybrid\"\nshard_degree = 2"})
    for (const bool overlap : {true, false})
      for (const auto recompute : {Recompute::none, Recompute::full})
        for (const auto schedule :
             {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved,
              PipelineSchedule::zb_h1, PipelineSchedule::zb_v})
          for (const int pipeline : {1, 2, 4})
            for (const int data : {2, 4})
              for (const int tensor : {1, 2}) {
                const bool two_parts =
                    schedule == PipelineSchedule::interleaved || schedule == PipelineSchedule::zb_v;
                if (rehearse::testing::kSanitized && pipeline == 4) continue;
                if ((two_parts || schedule == PipelineSchedule::zb_h1) && pipeline == 1) continue;
                CAPTURE(keys, overlap, static_cast<int>(recompute), static_cast<int>(schedule), pipeline,
                        data, tensor);
                Scenario s = scenario(small_gpt(6), data, pipeline, 4);
                s.training.recompute = recompute;
                s.strategy.overlap = overlap;
                s.strategy.schedule = schedule;
                s.strategy.virtual_stages = two_parts ? 2 : 1;
                s.strategy.bucket_bytes = 4 * 1048576.0;
                s.strategy.tensor = tensor;
                s.strategy.sequence_parallel = tensor > 1;
                s.strategy.placement = {"tensor", "data", "pipeline"};
                s.cluster = cluster(data * pipeline * tensor);
                const Plan plan = write_schedule(sharded(s, keys));
                REQUIRE_NOTHROW(check(*plan.schedule));
              }
}
