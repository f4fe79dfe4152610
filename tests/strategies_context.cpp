// Compares what context parallelism sends, computes and sums with the formulas of the papers.
#include <algorithm>
#include <map>
#include <string>

#include "models/kernels.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "tests/catch.hpp"
#include "tests/strategies_axes.hpp"

namespace rehearse {
namespace {

using test::axes_scenario;
using test::flops_of_all_ranks;

constexpr std::array kKinds = {ContextKind::ring, ContextKind::all_gather, ContextKind::all_to_all};

Scenario context_scenario(Model model, int context, ContextKind kind, int data = 1, int tensor = 1,
                          int pipeline = 1) {
  Scenario s = axes_scenario(std::move(model), {data, context, tensor, pipeline});
  s.strategy.context_kind = kind;
  return s;
}

// Calls and bytes of a micro-batch that serve the context axis: of collectives as Collective::bytes counts
// them, of exchanges the bytes sent.
struct Sent {
  int calls = 0;
  double bytes = 0;
};
std::map<Pass, Sent> sent_for_microbatch(const Schedule& schedule, int microbatch) {
  std::map<Pass, Sent> sent;
  for (const Op& op : schedule.programs.front().ops) {
    if (op.purpose != Purpose::context || op.microbatch != microbatch) continue;
    Sent& its = sent[op.pass];
    ++its.calls;
    its.bytes += op.kind == OpKind::collective ? op.collective.bytes.base : op.messages.front().bytes.base;
  }
  return sent;
}

TEST_CASE("fused attention counts the model's FLOPs and sends the same, however its sequence is shared") {
  for (const ContextKind kind : kKinds)
    for (const int context : {1, 2, 4})
      for (const bool zigzag : {true, false}) {
        CAPTURE(kContextKindNames[static_cast<std::size_t>(kind)], context, zigzag);
        Scenario unfused = context_scenario(test::axes_gpt(2), context, kind, 1, 2);
        unfused.strategy.zigzag = zigzag;
        Scenario fused = unfused;
        fused.training.attention = AttentionKernels::flash_2;
        CHECK(flops_of_all_ranks(fused) == Approx(flops_of_all_ranks(unfused)));
        const auto sent = sent_for_microbatch(*write_schedule(unfused).schedule, 0);
        for (const auto& [pass, its] : sent_for_microbatch(*write_schedule(fused).schedule, 0)) {
          CHECK(its.calls == sent.at(pass).calls);
          CHECK(its.bytes == sent.at(pass).bytes);
        }
      }
}

TEST_CASE("context parallelism sends keys and values, or swaps tokens for heads") {
  const int layers = 3;
  struct Case {
    std::string name;
    ContextKind kind;
    int context;
    double kv_heads;  // of 8 query heads
    Recompute recompute;
    // Calls and bytes of a layer, in units of b s h elements of 4 bytes.
    std::map<Pass, Sent> expected;
  };
  // Keys and values together have 2 h elements per token, fewer with grouped queries.
  const std::vector<Case> cases = {
      // Forward: n - 1 hops of a share. Backward: the same, and n hops of the gradients one step behind, in n
      // + 1 ops.
      {"ring of 2",
       ContextKind::ring,
       2,
       8,
       Recompute::none,
       {{Pass::forward, {1, 2.0 / 2}}, {Pass::backward, {3, 2 * 3 / 2.0}}}},
      {"ring of 4",
       ContextKind::ring,
       4,
       8,
       Recompute::none,
       {{Pass::forward, {3, 2 * 3.0 / 4}}, {Pass::backward, {5, 2 * 7.0 / 4}}}},
      {"ring, recomputed",
       ContextKind::ring,
       4,
       2,
       Recompute::full,
       {{Pass::forward, {3, 0.5 * 3.0 / 4}},
        {Pass::recompute, {3, 0.5 * 3.0 / 4}},
        {Pass::backward, {5, 0.5 * 7.0 / 4}}}},
      {"ring, attention recomputed",
       ContextKind::ring,
       2,
       8,
       Recompute::selective,
       {{Pass::forward, {1, 1}}, {Pass::recompute, {1, 1}}, {Pass::backward, {3, 3}}}},
      // All-gathers in the forward and again in the backward pass, which reduce-scatters the gradients.
      {"all-gather",
       ContextKind::all_gather,
       4,
       8,
       Recompute::none,
       {{Pass::forward, {1, 2}}, {Pass::backward, {2, 4}}}},
      {"all-gather of 2 heads",
       ContextKind::all_gather,
       4,
       2,
       Recompute::none,
       {{Pass::forward, {1, 0.5}}, {Pass::backward, {2, 1}}}},
      // Queries, keys and values, and attention's result: each pair of ranks exchanges 1 / n^2 of each.
      {"all-to-all",
       ContextKind::all_to_all,
       4,
       8,
       Recompute::none,
       {{Pass::forward, {3, 4.0 / 16}}, {Pass::backward, {3, 4.0 / 16}}}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Model model = test::axes_gpt(layers);
    std::get<Transformer>(model.shape).kv_heads = c.kv_heads;
    Scenario s = context_scenario(model, c.context, c.kind);
    s.training.recompute = c.recompute;
    const auto plan = write_schedule(s);
    REQUIRE_NOTHROW(check(*plan.schedule));
    const auto& t = std::get<Transformer>(model.shape);
    const double bsh = 4 * s.training.micro_batch * t.sequence_length * t.hidden;
    const std::map<Pass, Sent> sent = sent_for_microbatch(*plan.schedule, 1);
    CHECK(sent.size() == c.expected.size());
    for (const auto& [pass, expected] : c.expected) {
      CAPTURE(static_cast<int>(pass));
      REQUIRE(sent.count(pass) == 1);
      CHECK(sent.at(pass).calls == layers * expected.calls);
      CHECK(sent.at(pass).bytes == Approx(layers * expected.bytes * bsh).epsilon(1e-12));
    }
  }
}

TEST_CASE("heads beyond the key-value heads split their queries, whose keys are gathered") {
  Model model = test::axes_gpt(2);
  std::get<Transformer>(model.shape).kv_heads = 2;
  const Scenario s = context_scenario(model, 4, ContextKind::all_to_all);
  const std::vector<Factor> factors = factors_of(s);
  REQUIRE(factors.size() == 2);
  CHECK(factors[0].size == 2);
  CHECK(factors[1].size == 2);
  CHECK_NOTHROW(check(*write_schedule(s).schedule));
}

TEST_CASE("the model's FLOPs do not depend on the context degree") {
  Model grouped = test::axes_gpt(3), windows = test::axes_gpt(3);
  std::get<Transformer>(grouped.shape).kv_heads = 2;
  std::get<Transformer>(windows.shape).window = 16;
  for (const Model& model : {test::axes_gpt(3), grouped, windows})
    for (const ContextKind kind : kKinds)
      for (const bool zigzag : {true, false})
        for (const auto& [context, tensor] : {std::pair(2, 1), std::pair(4, 1), std::pair(2, 4)}) {
          // A window masks parts of blocks in the ring, and the count includes these masked scores.
          if (kind == ContextKind::ring && std::get<Transformer>(model.shape).window > 0) continue;
          CAPTURE(static_cast<int>(kind), zigzag, context, tensor);
          Scenario s = context_scenario(model, context, kind, 1, tensor);
          s.strategy.zigzag = zigzag;
          s.strategy.sequence_parallel = tensor > 1;
          CHECK(flops_of_all_ranks(s) ==
                Approx(flops_of_all_ranks(axes_scenario(model, {1, 1, 1, 1}))).epsilon(1e-9));
        }
}

TEST_CASE("causal attention in a ring takes all ranks equally long where the sequence is split zigzag") {
  for (const int n : {2, 4, 8})
    for (const bool causal : {true, false})
      for (const bool zigzag : {true, false}) {
        CAPTURE(n, causal, zigzag);
        Model model = test::axes_gpt(1);
        std::get<Transformer>(model.shape).causal = causal;
        std::get<Transformer>(model.shape).masked_lm_head = !causal;
        Scenario s = context_scenario(model, n, ContextKind::ring);
        s.strategy.zigzag = zigzag;
        const auto plan = write_schedule(s);
        std::vector<double> blocks(static_cast<std::size_t>(n), 0);
        double block = 0;  // FLOPs of a rank's queries with one rank's keys
        for (const Op& op : plan.schedule->programs.front().ops) {
          if (op.pass != Pass::forward || op.microbatch != 0 || op.name.find("step") == std::string::npos ||
              op.kind != OpKind::compute)
            continue;
          const double flops = product_flops(plan.schedule->works[op.work].kernels);
          if (block == 0) block = flops;
          for (int rank = 0; rank < n; ++rank)
            blocks[static_cast<std::size_t>(rank)] +=
                flops / block * op.share.at(plan.schedule->roles[0], rank);
        }
        for (int rank = 0; rank < n; ++rank) {
          const double expected = !causal ? n : zigzag ? 1 + (n - 1) / 2.0 : rank + 1;
          CHECK(blocks[static_cast<std::size_t>(rank)] == Approx(expected).epsilon(1e-9));
        }
      }
}

TEST_CASE("gradients are summed over the ranks that share a batch or a sequence") {
  for (const ContextKind kind : kKinds) {
    Scenario s = context_scenario(test::axes_gpt(2), 4, kind, 2);
    s.strategy.bucket_bytes = s.strategy.first_bucket_bytes = 1e9;
    const auto plan = write_schedule(s);
    double parameters = 0, summed = 0;
    for (const LayerCost& layer : layer_costs(s.model, pass_shape(s))) parameters += layer.parameters;
    for (const Op& op : plan.schedule->programs.front().ops) {
      CHECK(op.action.kind != Action::Kind::sum_shared);
      if (op.pass != Pass::gradient_sync) continue;
      CHECK(group_size(plan.schedule->roles[0], op.collective.group) == 8);
      summed += op.collective.bytes.base;
    }
    CHECK(summed == Approx(4 * parameters));

    // Local SGD averages only over the data axis; ranks that share a sequence synchronize in every step.
    s.strategy.gradients = "local-sgd";
    const auto local = write_schedule(s);
    double apart = 0, averaged = 0;
    for (const Op& op : local.schedule->programs.front().ops) {
      if (op.kind != OpKind::collective || op.pass != Pass::gradient_sync) continue;
      const bool within = op.action.kind == Action::Kind::sum_shared;
      CHECK(group_size(local.schedule->roles[0], op.collective.group) == (within ? 4 : 2));
      (within ? apart : averaged) += op.collective.bytes.base;
    }
    CHECK(apart == Approx(local.schedule->optimizer_steps * 4 * parameters));
    CHECK(averaged == Approx(4 * parameters));
  }
}

}  // namespace
}  // namespace rehearse
