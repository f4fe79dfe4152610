// Activations that lie on a device at the peak of a step, against Korthikanti et al., "Reducing Activation
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
// The logarithms of the sums of each head's softmax, in fp32, instead of its 5 a s / h.
double logarithms(double sbh, double as_h) {
  return 4 * sbh * as_h / GptShape{}.sequence;
}
const Case kCases[] = {
    {"none", 1, false, [](double sbh, double as_h, double) { return sbh * (34 + 5 * as_h); }},  // eq. 1
    {"none", 4, false,
     [](double sbh, double as_h, double t) { return sbh * (10 + 24 / t + 5 * as_h / t); }},          // 2
    {"none", 4, true, [](double sbh, double as_h, double t) { return sbh / t * (34 + 5 * as_h); }},  // 4
    {"selective", 1, false, [](double sbh, double, double) { return 34 * sbh; }},
    {"selective", 4, false, [](double sbh, double, double t) { return sbh * (10 + 24 / t); }},
    {"selective", 4, true, [](double sbh, double, double t) { return 34 * sbh / t; }},  // 6
    // Input, queries, values and what is put into GELU; of several tensor ranks also the projection's sum.
    {"operators", 1, false, [](double sbh, double, double) { return 14 * sbh; }},
    {"operators", 4, false, [](double sbh, double, double t) { return sbh * (4 + 12 / t); }},
    {"full", 1, false, [](double sbh, double, double) { return 2 * sbh; }},
    {"full", 4, false, [](double sbh, double, double) { return 2 * sbh; }},
    {"none", 1, false, [](double sbh, double as_h, double) { return 34 * sbh + logarithms(sbh, as_h); },
     "flash-1"},
    {"selective", 4, true,
     [](double sbh, double as_h, double t) { return (34 * sbh + logarithms(sbh, as_h)) / t; }, "flash-2"},
};

// Bytes that a layer keeps without recomputation.
double whole_layer(const Case& c, double sbh, double as_h) {
  const double t = c.tensor;
  if (std::string(c.attention) != "unfused") return c.layer(sbh, as_h, t);
  return c.sequence ? sbh / t * (34 + 5 * as_h) : sbh * (10 + 24 / t + 5 * as_h / t);
}

// Of the first stage, or of the only one.
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
    double layers;        // whose activations of one micro-batch lie there: section 4.2.3
    double microbatches;  // of the first layers
  };
  const Pipeline pipelines[] = {
      {"pipeline = 1\n", 1, 1, 8, 1},
      // p micro-batches of L / p layers.
      {"pipeline = 4\nschedule = \"1f1b\"\n", 4, 1, 8, 4},
      {"pipeline = 4\nschedule = \"1f1b\"\nblocking_p2p = true\n", 4, 1, 8, 4},
      // L (1 + (p - 1) / (p v)).
      {"pipeline = 4\nschedule = \"interleaved\"\nvirtual_stages = 2\n", 4, 2, 8 * (1 + 3.0 / 8), 8},
      // All micro-batches: L / p of each.
      {"pipeline = 4\nschedule = \"gpipe\"\n", 4, 1, 2 * kMicrobatches, kMicrobatches},
      // Qi et al. (arXiv 2401.10241), table 1: as 1F1B.
      {"pipeline = 4\nschedule = \"zb-h1\"\n", 4, 1, 8, 4},
  };
  for (const Case& c : kCases)
    for (const Pipeline& p : pipelines) {
      CAPTURE(c.recompute, c.attention, c.tensor, c.sequence, p.keys);
      const int parts = p.stages * p.chunks;
      std::string cut;  // embedding and head stand beside the layers of the stages at the ends
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
      // Besides, by section 4.3, s b h for the mask of the embedding's dropout, and where the head is on the
      // same device, the inputs of the last norm and of the logits' product, and the logits in 32 bits. Where
      // tokens are not shared out, neither are these.
      const double shares = c.sequence ? t : 1;
      expected += p.microbatches * sbh / shares;
      if (p.stages == 1) expected += 4 * sbh / shares + 4 * s * b * v / t;
      // And, which their formulas leave out, the one layer that is being computed again.
      const double again = whole_layer(c, sbh, as_h) - layer;
      expected += again;
      // Of a split backward pass both layers of the stage keep the inputs of their products until the
      // weights' gradients: 2 (query, key, value), 2 / t (projection), 2 (up), 8 / t (down) s b h of each.
      // One of the two has just been counted.
      const bool recomputes_all =
          std::string(c.recompute) == "full" || std::string(c.recompute) == "operators";
      if (recomputes_all && std::string(p.keys).find("zb-h1") != std::string::npos)
        expected += sbh * (4 + 10 / t);
      const BytesByKind peak = first_stage_peak(run);
      CHECK(peak[static_cast<std::size_t>(TensorKind::activation)] == Approx(expected).epsilon(1e-9));
      // The rest of what comes and goes is small, but for the gradients that a split pass keeps for one
      // micro-batch of two layers: 6 + 2 + 8 + 2 s b h of each, and those of the logits.
      const double rest = peak[static_cast<std::size_t>(TensorKind::activation_gradient)] +
                          peak[static_cast<std::size_t>(TensorKind::buffer)];
      CHECK(rest <= 12 * sbh + (p.stages == 1 ? 2 * s * b * v / t : 0) +
                        (std::string(p.keys).find("zb-h1") != std::string::npos ? 2 * 18 * sbh : 0));
    }
}

TEST_CASE("a backward pass in two parts keeps for its second part what the paper counts") {
  // Qi et al. (arXiv 2401.10241), table 1: 32 s b h of a layer between its two parts: 14 of the inputs of
  // products with weights, 18 of the gradients of what they give.
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
      // Each rank has its shards of what lies between column and row products, and all of what does not, or
      // with sequence parallelism the shard of the inputs: gradients are gathered when they are read.
      const double shares = sequence ? t : 1;
      CHECK(bytes("activations 3") == Approx(2 * sbh * (4 / shares + 10 / t)));
      CHECK(bytes("gradients for weights 3") == Approx(2 * sbh * (4 + 14 / t)));
      const double all = sequence ? sbh / t * (34 + 5 * as_h) : sbh * (10 + 24 / t + 5 * as_h / t);
      CHECK(bytes("activations 3") + bytes("activations of the input part 3") == Approx(2 * all));
      // What only the first part reads is not read by the second.
      for (const Op& op : middle.ops)
        if (op.pass == Pass::backward_weight)
          for (const int tensor : op.reads)
            CHECK(middle.tensors[tensor].name.find("of the input part") == std::string::npos);
    }
}
