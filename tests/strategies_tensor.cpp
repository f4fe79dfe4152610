// Compares what tensor and sequence parallelism send, compute, store and sum with the formulas of Shoeybi et
// al. 2019 ("Megatron-LM") and Korthikanti et al. 2022 ("Reducing Activation Recomputation").
#include <algorithm>
#include <map>
#include <string>

#include "models/kernels.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/layout/placement.hpp"
#include "simulator/strategies/programs/walk.hpp"
#include "tests/catch.hpp"
#include "tests/strategies_scenarios.hpp"

namespace rehearse {
namespace {

struct Shape {
  int layers = 4;
  double hidden = 256, heads = 8, sequence = 128, vocabulary = 1024;
};

Model gpt(const Shape& shape) {
  Model model = test::small_gpt(shape.layers);
  auto& t = std::get<Transformer>(model.shape);
  t.hidden = shape.hidden;
  t.heads = shape.heads;
  t.sequence_length = t.positions = shape.sequence;
  t.vocabulary = shape.vocabulary;
  return model;
}

Scenario tensor_scenario(Model model, int tensor, bool sequence, int data = 1, int pipeline = 1) {
  Scenario s = test::scenario(std::move(model), data, pipeline, 4);
  s.strategy.tensor = tensor;
  s.strategy.sequence_parallel = sequence;
  s.strategy.placement = {"tensor", "data", "pipeline"};
  s.cluster = test::cluster(data * pipeline * tensor);
  return s;
}

// Calls and elements of collectives over the tensor axis for one micro-batch, by kind and pass.
using Sent = std::map<std::pair<CollectiveKind, Pass>, std::pair<int, double>>;
Sent sent_for_microbatch(const Schedule& schedule, int microbatch) {
  Sent sent;
  for (const Program& program : schedule.programs)
    for (const Op& op : program.ops) {
      if (op.kind != OpKind::collective || op.purpose != Purpose::tensor || op.microbatch != microbatch)
        continue;
      auto& [calls, bytes] = sent[{op.collective.kind, op.pass}];
      ++calls;
      bytes += op.collective.bytes.base;
    }
  return sent;
}

TEST_CASE("tensor parallelism sends what Megatron-LM sends") {
  struct Case {
    int tensor;
    bool sequence;
    Recompute recompute;
    Sent expected;  // calls, and multiples of b s h elements of 4 bytes
  };
  using enum CollectiveKind;
  const double loss = 3.0 / 256;  // maximum, sum and label's logit of each token: 3 b s elements of b s h
  const int layers = 4;
  const std::vector<Case> cases = {
      // A layer has two all-reduces in the forward pass (after projection and down) and two in the backward
      // pass (before query and up). Besides, the forward pass sums the embedding and has three all-reduces of
      // the loss; the backward pass sums the gradient of the logits' input.
      {2,
       false,
       Recompute::none,
       {{{all_reduce, Pass::forward}, {2 * layers + 1 + 3, 2 * layers + 1 + loss}},
        {{all_reduce, Pass::backward}, {2 * layers + 1, 2 * layers + 1}}}},
      // Full recomputation repeats the two of each layer; recomputing only attention repeats none.
      {4,
       false,
       Recompute::full,
       {{{all_reduce, Pass::forward}, {2 * layers + 1 + 3, 2 * layers + 1 + loss}},
        {{all_reduce, Pass::recompute}, {2 * layers, 2 * layers}},
        {{all_reduce, Pass::backward}, {2 * layers + 1, 2 * layers + 1}}}},
      {4,
       false,
       Recompute::selective,
       {{{all_reduce, Pass::forward}, {2 * layers + 1 + 3, 2 * layers + 1 + loss}},
        {{all_reduce, Pass::backward}, {2 * layers + 1, 2 * layers + 1}}}},
      // Each all-reduce becomes a reduce-scatter and an all-gather; the inputs of QKV, up and logits are
      // gathered again for the gradients of their weights.
      {8,
       true,
       Recompute::none,
       {{{all_gather, Pass::forward}, {2 * layers + 1, 2 * layers + 1}},
        {{reduce_scatter, Pass::forward}, {2 * layers + 1, 2 * layers + 1}},
        {{all_reduce, Pass::forward}, {3, loss}},
        {{all_gather, Pass::backward}, {2 * layers + 1 + 2 * layers + 1, 4 * layers + 2}},
        {{reduce_scatter, Pass::backward}, {2 * layers + 1, 2 * layers + 1}}}},
      // Inputs gathered by recomputation are kept for the gradients of the weights; sums are stored.
      {8,
       true,
       Recompute::operators,
       {{{all_gather, Pass::forward}, {2 * layers + 1, 2 * layers + 1}},
        {{reduce_scatter, Pass::forward}, {2 * layers + 1, 2 * layers + 1}},
        {{all_reduce, Pass::forward}, {3, loss}},
        {{all_gather, Pass::recompute}, {2 * layers, 2 * layers}},
        {{all_gather, Pass::backward}, {2 * layers + 1 + 1, 2 * layers + 2}},
        {{reduce_scatter, Pass::backward}, {2 * layers + 1, 2 * layers + 1}}}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.tensor, c.sequence, static_cast<int>(c.recompute));
    Scenario s = tensor_scenario(gpt({}), c.tensor, c.sequence);
    s.training.recompute = c.recompute;
    const auto plan = write_schedule(s);
    const double bsh = 4 * s.training.micro_batch * 128 * 256;  // bytes: fp32
    const Sent sent = sent_for_microbatch(*plan.schedule, 1);
    CHECK(sent.size() == c.expected.size());
    for (const auto& [key, expected] : c.expected) {
      CAPTURE(static_cast<int>(key.first), static_cast<int>(key.second));
      REQUIRE(sent.count(key) == 1);
      CHECK(sent.at(key).first == expected.first);
      CHECK(sent.at(key).second == Approx(expected.second * bsh).epsilon(1e-12));
    }
  }
}

TEST_CASE("all ranks together compute what one computes alone") {
  const auto flops = [](const Scenario& s) {
    const auto plan = write_schedule(s);
    double sum = 0;
    for (int rank = 0; rank < plan.schedule->roles[0].size(); ++rank)
      for (const Op& op : plan.schedule->programs[plan.schedule->program_of(0, rank)].ops)
        if (op.work >= 0) sum += plan.schedule->works[op.work].model_flops;
    return sum;
  };
  Model grouped = gpt({}), experts = gpt({}), gated = gpt({});
  {
    auto& t = std::get<Transformer>(grouped.shape);
    t.kv_heads = 2;  // fewer than ranks, so ranks share them in pairs
    t.qk_norm = t.rotary = true;
    auto& e = std::get<Transformer>(experts.shape);
    e.experts = 8;
    e.experts_per_token = 2;
    e.shared_expert = 512;
    auto& g = std::get<Transformer>(gated.shape);
    g.gated = true;
    g.biases = false;
    g.positions = 0;
    g.tied_embeddings = false;
  }
  for (const Model& model : {gpt({}), grouped, experts, gated, test::perceptron(5)})
    for (const bool sequence : {false, true})
      for (const int tensor : {2, 4, 8}) {
        CAPTURE(model.name, sequence, tensor);
        Scenario s = tensor_scenario(model, tensor, sequence);
        s.training.micro_batch = 8;
        Scenario alone = tensor_scenario(model, 1, false);
        alone.training.micro_batch = 8;
        CHECK(flops(s) == Approx(flops(alone)).epsilon(1e-9));
      }
}

TEST_CASE("activations are kept as Korthikanti et al. count them") {
  // s b h (10 + 24/t + 5 a s / (h t)); with sequence parallelism s b h / t (34 + 5 a s / h); 16 bits.
  for (const double t : {1.0, 2.0, 8.0})
    for (const bool sequence : {false, true}) {
      CAPTURE(t, sequence);
      Scenario s = tensor_scenario(gpt({}), static_cast<int>(t), t > 1 && sequence);
      s.training.precision = Precision::bf16;
      const double sbh = 128 * s.training.micro_batch * 256, attention = 5.0 * 8 * 128 / 256;
      const double expected =
          t > 1 && sequence ? sbh / t * (34 + attention) : sbh * (10 + 24 / t + attention / t);
      CHECK(merged(model_layers(s.model, pass_shape(s))[2]).saved_bytes == Approx(expected).epsilon(1e-12));
    }
}

TEST_CASE("gradients that ranks of a tensor group hold in part are summed over it") {
  struct Case {
    std::string name;
    bool sequence, qk_norm;
    double kv_heads;
    double per_layer;  // parameters per layer
    double elsewhere;  // parameters of the first and the last layer
  };
  const double h = 256, head = 32, s = 128;
  const std::vector<Case> cases = {
      {"replicated work has whole gradients", false, false, 0, 0, 0},
      // Two norms of gain and offset, and the biases of projection and down; positions; the last norm.
      {"tokens shared out", true, false, 0, 6 * h, s * h + 2 * h},
      {"norms of heads", false, true, 0, 2 * head, 0},
      // Weights and biases of one head's keys and values, on both ranks that share it.
      {"shared heads", false, false, 2, 2 * head * h + 2 * head, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Model model = gpt({});
    auto& t = std::get<Transformer>(model.shape);
    t.qk_norm = c.qk_norm;
    t.kv_heads = c.kv_heads;
    const Scenario scenario = tensor_scenario(model, 4, c.sequence);
    const std::vector<Layer> layers = model_layers(scenario.model, pass_shape(scenario));
    const Walk w = walk(layers, factors_of(scenario));
    double inside = 0, ends = 0;
    for (const PartialGradient& partial : w.partial_gradients)
      (partial.layer > 0 && partial.layer <= 4 ? inside : ends) += partial.parameters;
    CHECK(inside == Approx(4 * c.per_layer));
    CHECK(ends == Approx(c.elsewhere));

    const auto plan = write_schedule(scenario);
    double bytes = 0;
    for (const Op& op : plan.schedule->programs[0].ops)
      if (op.pass == Pass::gradient_sync) bytes += op.collective.bytes.base;
    CHECK(bytes == Approx(4 * (4 * c.per_layer + c.elsewhere)));
  }
}

TEST_CASE("schedules with tensor parallelism pass the checks") {
  for (const bool sequence : {false, true})
    for (const int tensor : {2, 4})
      for (const int pipeline : {1, 2})
        for (const PipelineSchedule order :
             {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved})
          for (const bool blocking : {false, true}) {
            if (order == PipelineSchedule::interleaved && pipeline == 1) continue;
            CAPTURE(sequence, tensor, pipeline, static_cast<int>(order), blocking);
            Scenario s = tensor_scenario(gpt({6}), tensor, sequence, 2, pipeline);
            s.strategy.schedule = order;
            s.strategy.virtual_stages = order == PipelineSchedule::interleaved ? 2 : 1;
            s.strategy.blocking_p2p = blocking;
            s.strategy.bucket_bytes = s.strategy.first_bucket_bytes = 1e5;
            s.training.recompute = Recompute::full;
            CHECK_NOTHROW(check(*write_schedule(s).schedule));
          }
}

TEST_CASE("stages exchange the shards that they hold") {
  for (const bool sequence : {false, true}) {
    Scenario s = tensor_scenario(gpt({}), 4, sequence, 1, 2);
    const auto plan = write_schedule(s);
    const double whole = 4 * s.training.micro_batch * 128 * 256;
    for (const Program& program : plan.schedule->programs)
      for (const Op& op : program.ops)
        for (const Message& message : op.messages)
          CHECK(message.bytes.base == Approx(sequence ? whole / 4 : whole));
  }
}

// Narayanan et al. (SC 2021), section 4.1: each of t tensor ranks sends 1/t of the tensor, and the receivers
// gather it over NVLink.
TEST_CASE("with scatter and gather each tensor rank sends its part to the next stage") {
  for (const bool vee : {false, true}) {
    CAPTURE(vee);
    Scenario s = tensor_scenario(gpt({6}), 4, false, 1, 2);
    s.strategy.scatter_gather = true;
    if (vee) {
      s.strategy.schedule = PipelineSchedule::zb_v;
      s.strategy.virtual_stages = 2;
    }
    const auto plan = write_schedule(s);
    CHECK_NOTHROW(check(*plan.schedule));
    Scenario whole_sent = s;
    whole_sent.strategy.scatter_gather = false;
    const auto without = write_schedule(whole_sent);
    const double whole = 4 * s.training.micro_batch * 128 * 256;
    for (std::size_t p = 0; p < plan.schedule->programs.size(); ++p) {
      int received = 0, gathers = 0, before = 0;
      for (const Op& op : without.schedule->programs[p].ops)
        before += op.kind == OpKind::collective && op.collective.kind == CollectiveKind::all_gather ? 1 : 0;
      for (const Op& op : plan.schedule->programs[p].ops) {
        for (const Message& message : op.messages) {
          CHECK(message.bytes.base == Approx(whole / 4));
          received += message.direction == Message::Direction::receive ? 1 : 0;
        }
        if (op.kind != OpKind::collective || op.collective.kind != CollectiveKind::all_gather) continue;
        CHECK(op.collective.bytes.base == Approx(whole));
        CHECK(op.purpose == Purpose::tensor);
        ++gathers;
      }
      CHECK(received > 0);
      CHECK(before == 0);
      CHECK(gathers == received);  // at the turn of a vee nothing is sent or gathered
    }
  }
}

// ----- the algebra

TEST_CASE("changes between placements, with their order and their elements") {
  using Kind = Placement::Kind;
  const Placement r{}, p{Kind::partial}, s{Kind::sharded, Dim::sequence}, h{Kind::sharded, Dim::hidden};
  using C = Change::Kind;
  struct Case {
    std::string name;
    Placements from, to;
    std::vector<int> sizes;
    std::vector<Change> expected;
  };
  const std::vector<Case> cases = {
      {"nothing", {r}, {r}, {4}, {}},
      {"all-reduce", {p}, {r}, {4}, {{C::all_reduce, {0}, 64, Dim::batch}}},
      {"reduce-scatter", {p}, {s}, {4}, {{C::reduce_scatter, {0}, 64, Dim::sequence}}},
      {"all-gather", {s}, {r}, {4}, {{C::all_gather, {0}, 64, Dim::sequence}}},
      {"all-to-all", {s}, {h}, {4}, {{C::all_to_all, {0}, 64, Dim::hidden}}},
      {"slice", {r}, {s}, {4}, {{C::slice, {0}, 64, Dim::sequence}}},
      {"one all-reduce over both", {p, p}, {r, r}, {2, 4}, {{C::all_reduce, {0, 1}, 64, Dim::batch}}},
      {"reduce-scatter first: the all-reduce carries a share",
       {p, p},
       {r, s},
       {2, 4},
       {{C::reduce_scatter, {1}, 64, Dim::sequence}, {C::all_reduce, {0}, 16, Dim::batch}}},
      {"others' shards are not sent", {s, p}, {s, r}, {2, 4}, {{C::all_reduce, {1}, 32, Dim::batch}}},
      {"the innermost shard is left first",
       {s, s},
       {r, r},
       {2, 4},
       {{C::all_gather, {0, 1}, 64, Dim::sequence}}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::vector<Change> found = changes(c.from, c.to, c.sizes, 64);
    REQUIRE(found.size() == c.expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].kind == c.expected[i].kind);
      CHECK(found[i].factors == c.expected[i].factors);
      CHECK(found[i].elements == c.expected[i].elements);
    }
  }
  CHECK_THROWS_AS(changes({s}, {p}, {2}, 1), std::invalid_argument);
  // The outer of two shards cannot be gathered while the inner one remains.
  CHECK_THROWS_AS(changes({s, s}, {r, s}, {2, 2}, 1), std::invalid_argument);
}

}  // namespace
}  // namespace rehearse
