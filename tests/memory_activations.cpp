// Checks the activations on a device at the peak of a step against Korthikanti et al., "Reducing Activation
// Recomputation in Large Transformer Models" (2022), sections 4 and 5, all in 16 bits.
#include <fmt/format.h>

#include <algorithm>

#include "simulator/strategies/strategy.hpp"
#include "tests/memory_run.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr const char* kCluster = "preset = \"dgx-a100\"\nnodes = {}\ndevices_per_node = {}\n";

struct Case {
  const char* recompute;
  int tensor;
  bool sequence;
  double (*layer)(double sbh, double as_h, double t);  // bytes; as_h: a s / h
  const char* attention = "unfused";
};
// Returns the bytes of the log-sum-exp of each head's softmax rows in fp32, which replace its 5 a s / h.
double logarithms(double sbh, double as_h) {
  return 4 * sbh * as_h / GptShape{}.sequence;
}
const Case kCases[] = {
    {"none", 1, false, [](double sbh, double as_h, double) { return sbh * (34 + 5 * as_h); }},  // eq. 1
    {"none", 4, false,
     [](double sbh, double as_h, double t) { return sbh * (10 + 24 / t + 5 * as_h / t); }},          // eq. 2
    {"none", 4, true, [](double sbh, double as_h, double t) { return sbh / t * (34 + 5 * as_h); }},  // eq. 4
    {"selective", 1, false, [](double sbh, double, double) { return 34 * sbh; }},
    {"selective", 4, false, [](double sbh, double, double t) { return sbh * (10 + 24 / t); }},
    {"selective", 4, true, [](double sbh, double, double t) { return 34 * sbh / t; }},  // eq. 6
    // Input, queries, values and GELU's input; with several tensor ranks also the projection's sum.
    {"operators", 1, false, [](double sbh, double, double) { return 14 * sbh; }},
    {"operators", 4, false, [](double sbh, double, double t) { return sbh * (4 + 12 / t); }},
    {"full", 1, false, [](double sbh, double, double) { return 2 * sbh; }},
    {"full", 4, false, [](double sbh, double, double) { return 2 * sbh; }},
    {"none", 1, false, [](double sbh, double as_h, double) { return 34 * sbh + logarithms(sbh, as_h); },
     "flash-1"},
    {"selective", 4, true,
     [](double sbh, double as_h, double t) { return (34 * sbh + logarithms(sbh, as_h)) / t; }, "flash-2"},
};

// Returns the most bytes of gradients inside a layer at once: of GELU's input and result, 2 x 8 s b h, or of
// attention's result, queries, keys and values, 8 s b h, beside the gradients of the softmax and of the
// scores, 2 x 2 a s^2 b, or FlashAttention-2's sum for the queries in fp32, 4 s b h.
double gradients_inside(const Case& c, double sbh, double as_h) {
  const double scores = std::string(c.attention) == "unfused" ? 4 * as_h * sbh : 4 * sbh;
  return std::max(16 * sbh, 8 * sbh + scores) / c.tensor;
}

// Returns the bytes of activations that a layer stores without recomputation.
double whole_layer(const Case& c, double sbh, double as_h) {
  const double t = c.tensor;
  if (std::string(c.attention) != "unfused") return c.layer(sbh, as_h, t);
  return c.sequence ? sbh / t * (34 + 5 * as_h) : sbh * (10 + 24 / t + 5 * as_h / t);
}

// Returns the peak of the first stage, or of the only one.
BytesByKind first_stage_peak(const Prediction& run) {
  for (const MemoryPeak& peak : memory_peaks(run.trace, 0)) {
    const RankClass& ranks = run.trace.classes[peak.rank_class];
    const std::string& name = run.plan.schedule->programs[ranks.phase_program].name;
    if (name == "stage 0" || name == "worker") return peak.by_kind;
  }
  FAIL("there is no first stage");
  return {};
}

}  // namespace

TEST_CASE("activations at the first stage's peak are those that Korthikanti et al. count, and few more") {
  const GptShape gpt;  // 8 layers
  const double b = 2, s = gpt.sequence, h = gpt.hidden, v = gpt.vocabulary;
  const double sbh = s * b * h, as_h = gpt.heads * s / h;
  constexpr int kMicrobatches = 16;
  struct Pipeline {
    const char* keys;
    int stages, chunks;
    double layers;        // layers whose activations of one micro-batch are there: section 4.2.3
    double microbatches;  // micro-batches whose activations of the first layer are there
  };
  const Pipeline pipelines[] = {
      {"pipeline = 1\n", 1, 1, 8, 1},
      // p micro-batches of L / p layers.
      {"pipeline = 4\nschedule = \"1f1b\"\n", 4, 1, 8, 4},
      {"pipeline = 4\nschedule = \"1f1b\"\nblocking_p2p = true\n", 4, 1, 8, 4},
      // L (1 + (p - 1) / (p v)).
      {"pipeline = 4\nschedule = \"interleaved\"\nvirtual_stages = 2\n", 4, 2, 8 * (1 + 3.0 / 8), 8},
      // All micro-batches, L / p layers of each.
      {"pipeline = 4\nschedule = \"gpipe\"\n", 4, 1, 2 * kMicrobatches, kMicrobatches},
      // Same as 1F1B by Qi et al. (arXiv 2401.10241), table 1.
      {"pipeline = 4\nschedule = \"zb-h1\"\n", 4, 1, 8, 4},
  };
  for (const Case& c : kCases)
    for (const Pipeline& p : pipelines) {
      CAPTURE(c.recompute, c.attention, c.tensor, c.sequence, p.keys);
      const int parts = p.stages * p.chunks;
      std::string cut;  // the first and the last stage also hold the embedding and the head
      for (int i = 0; i < parts; ++i)
        cut += fmt::format("{}{}", i > 0 ? ", " : "", 8 / parts + (i == 0) + (i == parts - 1));
      const Prediction run = predicted(scenario_of(
          gpt_text(gpt),
          fmt::format("micro_batch = {}\nglobal_batch = {}\nrecompute = \"{}\"\nattention = \"{}\"\n", b,
                      b * kMicrobatches, c.recompute, c.attention),
          fmt::format("data = 1\ntensor = {}\nsequence_parallel = {}\n{}stage_layers = [{}]\n", c.tensor,
                      c.sequence, p.keys, cut),
          fmt::format(kCluster, p.stages, c.tensor)));
      const double layer = c.layer(sbh, as_h, c.tensor), t = c.tensor;
      double expected = p.layers * layer;
      // By section 4.3, add s b h for the mask of the embedding's dropout and, if the head is on the same
      // device, the inputs of the last norm and of the logits' product, and the logits in 32 bits. They are
      // sharded only with sequence parallelism.
      const double shares = c.sequence ? t : 1;
      expected += p.microbatches * sbh / shares;
      if (p.stages == 1) expected += 4 * sbh / shares + 4 * s * b * v / t;
      // Add the one layer that is being recomputed, which their formulas leave out.
      const double again = whole_layer(c, sbh, as_h) - layer;
      expected += again;
      // With a split backward pass, both layers of the stage retain the inputs of their products until the
      // gradients of the weights are computed: 2 (query, key, value), 2 / t (projection), 2 (up), 8 / t
      // (down) s b h each. One of the two layers has just been counted.
      const bool recomputes_all =
          std::string(c.recompute) == "full" || std::string(c.recompute) == "operators";
      if (recomputes_all && std::string(p.keys).find("zb-h1") != std::string::npos)
        expected += sbh * (4 + 10 / t);
      const BytesByKind peak = first_stage_peak(run);
      CHECK(peak[static_cast<std::size_t>(TensorKind::activation)] == Approx(expected).epsilon(1e-9));
      // All other temporary tensors are small, except for gradients inside a layer, the gradients that a
      // split pass retains for one micro-batch of two layers, (6 + 2 + 8 + 2) s b h each, and those of the
      // logits.
      const double rest = peak[static_cast<std::size_t>(TensorKind::activation_gradient)] +
                          peak[static_cast<std::size_t>(TensorKind::buffer)];
      CHECK(rest <= 12 * sbh + gradients_inside(c, sbh, as_h) + (p.stages == 1 ? 2 * s * b * v / t : 0) +
                        (std::string(p.keys).find("zb-h1") != std::string::npos ? 2 * 18 * sbh : 0));
    }
}

TEST_CASE("a backward pass in two parts keeps for its second part what the paper counts") {
  // Qi et al. (arXiv 2401.10241), table 1: 32 s b h for each layer between its two parts, of which 14 for the
  // inputs of products with weights and 18 for the gradients of their outputs.
  const GptShape gpt;
  const double sbh = gpt.sequence * gpt.hidden, as_h = gpt.heads * gpt.sequence / gpt.hidden;
  for (const double t : {1.0, 2.0})
    for (const bool sequence : {false, true}) {
      if (t == 1 && sequence) continue;
      CAPTURE(t, sequence);
      const Scenario scenario =
          scenario_of(gpt_text(gpt), "global_batch = 8\nattention = \"unfused\"\n",
                      fmt::format("data = 1\ntensor = {}\nsequence_parallel = {}\npipeline = 4\nschedule = "
                                  "\"zb-h1\"\nstage_layers = [3, 2, 2, 3]\n",
                                  t, sequence),
                      fmt::format(kCluster, 4, t));
      const Plan plan = write_schedule(scenario);
      const Program& middle = plan.schedule->programs[1];
      const auto bytes = [&](const std::string& name) {
        for (const Tensor& tensor : middle.tensors)
          if (tensor.name == name) return tensor.bytes.base;
        return 0.0;
      };
      // Each rank stores its shards of the tensors between column-parallel and row-parallel products, and
      // complete copies of the others. With sequence parallelism, it stores a shard of the inputs, but
      // complete gradients, which are gathered when they are read.
      const double shares = sequence ? t : 1;
      CHECK(bytes("activations 3") == Approx(2 * sbh * (4 / shares + 10 / t)));
      CHECK(bytes("gradients for weights 3") == Approx(2 * sbh * (4 + 14 / t)));
      const double all = sequence ? sbh / t * (34 + 5 * as_h) : sbh * (10 + 24 / t + 5 * as_h / t);
      CHECK(bytes("activations 3") + bytes("activations of the input part 3") == Approx(2 * all));
      // The second part reads no tensor that belongs to the first part only.
      for (const Op& op : middle.ops)
        if (op.pass == Pass::backward_weight)
          for (const int tensor : op.reads)
            CHECK(middle.tensors[tensor].name.find("of the input part") == std::string::npos);
    }
}
