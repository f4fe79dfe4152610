// Checks mixtures of experts: parameters, arithmetic and traffic of a feed-forward network of which each
// token uses only a part.
#include "models/model.hpp"
#include "tests/catch.hpp"
#include "tests/models_kernels.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

Transformer small(double experts, double per_token, double shared = 0) {
  Transformer t;
  t.layers = 2;
  t.hidden = 64;
  t.heads = 8;
  t.kv_heads = 2;
  t.feed_forward = 96;
  t.vocabulary = 1000;
  t.sequence_length = 32;
  t.gated = t.rotary = true;
  t.biases = t.qkv_biases = t.dropout = t.tied_embeddings = false;
  t.experts = experts;
  t.experts_per_token = per_token;
  t.shared_expert = shared;
  return t;
}

Model transformer(const Transformer& shape) {
  Model model;
  model.shape = shape;
  return model;
}

}  // namespace

TEST_CASE("published mixtures have their published parameters") {
  struct Case {
    const char* preset;
    double parameters;  // of the checkpoint on Hugging Face
    double total_billion, total_tolerance, active_billion, active_tolerance;  // as their makers round them
    bool embedding;  // counts among the active parameters
    const char* source;
  };
  const Case cases[] = {
      {"mixtral-8x7b", 46'702'792'704, 46.7, 0.05, 12.9, 0.06, true, "Jiang et al. 2024: 47B and 13B"},
      {"mixtral-8x22b", 140'620'634'112, 140.6, 0.05, 39.1, 0.06, true,
       "Mistral AI, 17 April 2024: 141B and 39B"},
      {"qwen3-30b-a3b", 30'532'122'624, 30.5, 0.05, 3.3, 0.06, true, "model card"},
      {"qwen3-235b-a22b", 235'093'634'560, 235, 0.5, 22, 0.5, true, "model card"},
      // The main model has 671,026,419,200 weights, of which 58 x 256 are the routers' balancing bias.
      {"deepseek-v3", 671'026'404'352, 671, 0.05, 36.6, 0.05, false,
       "README_WEIGHTS.md: without the embedding; arXiv 2412.19437: 671B, 37B"},
      {"gpt-oss-20b", 20'914'757'184, 20.91, 0.005, 3.61, 0.005, false, "arXiv 2508.10925, table 1"},
      {"gpt-oss-120b", 116'829'156'672, 116.83, 0.005, 5.13, 0.005, false, "arXiv 2508.10925, table 1"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.preset, c.source);
    const Model model = model_preset(c.preset);
    const auto& t = std::get<Transformer>(model.shape);
    const double active = active_parameter_count(model), embedding = t.vocabulary * t.hidden;
    CHECK(parameter_count(model) == c.parameters);
    CHECK(parameter_count(model) / 1e9 == Approx(c.total_billion).margin(c.total_tolerance));
    CHECK((active - (c.embedding ? 0 : embedding)) / 1e9 ==
          Approx(c.active_billion).margin(c.active_tolerance));
    if (t.biases || t.kv_lora_rank > 0) continue;
    // Each token is multiplied with every weight that it uses except the embedding's: 6 FLOPs each, plus
    // attention's 12 s per layer and query element; the FLOPs of norms are neglected.
    const double s = 4096, head = t.head_dim > 0 ? t.head_dim : t.hidden / t.heads;
    const double norms = (2 * t.layers + 1) * t.hidden + (t.qk_norm ? 2 * t.layers * head : 0);
    const double met = active - embedding - norms;
    CHECK(flops_per_sample(model, s) ==
          Approx(s * (6 * met + 12 * s * t.heads * head * t.layers)).epsilon(1e-12));
  }
}

TEST_CASE("a layer of experts by hand") {
  const double h = 64, f = 96, n = 32 * 4, kv = 16, element = 2;
  PassShape pass;
  pass.micro_batch = 4;
  const auto layer_of = [&](double experts, double chosen, double shared = 0) {
    return layer_costs(transformer(small(experts, chosen, shared)), pass)[1];
  };
  const LayerCost dense = layer_of(0, 0);
  struct Case {
    double experts, chosen, shared;
  };
  for (const Case& c : {Case{8, 2, 0}, Case{4, 1, 0}, Case{60, 4, 160}, Case{1, 1, 0}, Case{1000, 1, 0}}) {
    CAPTURE(c.experts, c.chosen, c.shared);
    const LayerCost layer = layer_of(c.experts, c.chosen, c.shared);
    const double expert = 3 * h * f, gate = c.shared > 0 ? 3 * h * c.shared + h : 0;
    CHECK(layer.parameters == dense.parameters + (c.experts - 1) * expert + c.experts * h + gate);
    // Two FLOPs (multiply and add) for each weight that a token uses; the gate of the shared expert is not a
    // matrix product.
    const double more = 2 * n * ((c.chosen - 1) * expert + c.experts * h + 3 * h * c.shared);
    CHECK(flops(layer.forward) == Approx(flops(dense.forward) + more).epsilon(1e-12));
    CHECK(flops(layer.backward_weight) == Approx(flops(dense.backward_weight) + more).epsilon(1e-12));
    CHECK(flops(layer.backward_input) == Approx(flops(dense.backward_input) + more).epsilon(1e-12));
    // Elements per token: SwiGLU on the rows of each chosen expert 3 f (and of the shared one), dispatched
    // rows 2 k h, combined rows (k + 1) h; the router's logits in fp32 are read and written; the gate reads
    // two rows of h, then reads one and writes one.
    const double k = c.chosen, shared_moves = c.shared > 0 ? 3 * c.shared + 4 * h : 0;
    CHECK(memory_bytes(layer.forward) ==
          Approx(memory_bytes(dense.forward) +
                 element * n * ((k - 1) * 3 * f + (3 * k + 1) * h + shared_moves) + 8 * n * c.experts)
              .epsilon(1e-12));
    // Stored: rows in the order of their experts, and the experts' results; 3 f per row inside the experts;
    // the logits.
    const double shared_kept = c.shared > 0 ? 3 * c.shared + h : 0;
    CHECK(layer.saved_bytes ==
          Approx(dense.saved_bytes + element * n * (2 * k * h + 3 * f * (k - 1) + shared_kept) +
                 4 * n * c.experts)
              .epsilon(1e-12));
  }
  CHECK(dense.parameters == 2 * h * h + 2 * h * kv + 3 * h * f + 2 * h);
}

TEST_CASE("all experts' weights are read, however few tokens there are") {
  PassShape pass;
  pass.micro_batch = 1;
  pass.sequence_length = 32;
  // 64 rows over 8 experts: one grouped product of 8 rows each; of 1000 experts, 64 have a row.
  const auto grouped = [&](double experts) {
    const std::vector<LayerCost> layers = layer_costs(transformer(small(experts, 2)), pass);
    for (const Kernel& kernel : layers[1].forward)
      if (kernel.kind == Kernel::Kind::gemm && kernel.batch > 1) return kernel;
    return Kernel{};
  };
  CHECK(grouped(8).batch == 8);
  CHECK(grouped(8).m == 8);
  CHECK(grouped(1000).batch == 64);
  CHECK(grouped(1000).m == 1);
  CHECK(grouped(8).bytes == 2 * (64 * 64 + 8 * 64 * 192 + 64 * 192));
}

TEST_CASE("kernels of frameworks on routed rows move what is given") {
  const double h = 64, f = 96, k = 2, rows = 32 * 4 * k, element = 2;
  const auto moved = [&](auto change) {
    PassShape pass;
    pass.micro_batch = 4;
    pass.precision = Precision::mxfp8;
    change(pass);
    const LayerCost layer = layer_costs(transformer(small(8, k)), pass)[1];
    return memory_bytes(layer.forward) + memory_bytes(layer.backward_input) +
           memory_bytes(layer.backward_weight);
  };
  const double base = moved([](PassShape&) {});
  const double gate = (3 + 5) * element * rows * f;  // SwiGLU forward and backward
  struct Case {
    const char* name;
    void (*change)(PassShape&);
    double more;
  };
  const Case cases[] = {
      // Inputs of both products, h and f, and gradients of their outputs, 2 f and h.
      {"casts", [](PassShape& p) { p.kernels.routed_cast_bytes = 4; }, 4 * rows * (h + f + 2 * f + h)},
      {"bf16 casts nothing",
       [](PassShape& p) {
         p.kernels.routed_cast_bytes = 4;
         p.precision = Precision::bf16;
       },
       0},
      {"a further copy", [](PassShape& p) { p.kernels.routed_copies = 1; }, 4 * 2 * element * rows * h},
      {"fused experts", [](PassShape& p) { p.kernels.fused_experts = true; }, -gate},
      {"fused experts cast the rows that come alone",
       [](PassShape& p) {
         p.kernels.fused_experts = true;
         p.kernels.routed_cast_bytes = 4;
       },
       4 * rows * 2 * h - gate},
      // Operands in 8 bits and SwiGLU's input in 16 bits, written to the stash and read back.
      {"stash", [](PassShape& p) { p.kernels.stashed_experts = true; },
       2 * 2 * rows * (h + f + element * 2 * f)},
      {"stash in 16 bits",
       [](PassShape& p) {
         p.kernels.stashed_experts = true;
         p.precision = Precision::bf16;
       },
       2 * 2 * rows * element * (h + f + 2 * f)},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(moved(c.change) - base == Approx(c.more).margin(1e-6));
  }
}

TEST_CASE("eager kernels add the experts' weighted bias, and sinks slow attention down") {
  PassShape pass;
  pass.micro_batch = 2;
  pass.sequence_length = 32;
  Transformer t = small(8, 2, 96);
  t.biases = true;
  t.attention_sinks = true;
  const auto whole = [&](const PassShape& p) { return layer_costs(transformer(t), p)[1]; };
  const auto moved = [](const LayerCost& layer) {
    return memory_bytes(layer.forward) + memory_bytes(layer.backward_input) +
           memory_bytes(layer.backward_weight);
  };
  const auto count = [](const std::vector<Kernel>& kernels) {
    double sum = 0;
    for (const Kernel& kernel : kernels) sum += kernel.count;
    return sum;
  };
  pass.attention = AttentionKernels::flash_3;
  const LayerCost base = whole(pass);
  PassShape biased = pass, sinks = pass;
  biased.kernels.expert_bias_bytes = 68;
  // 2 x 32 tokens, each with 2 of 8 experts.
  const LayerCost with_bias = whole(biased);
  CHECK(moved(with_bias) - moved(base) == Approx(68 * 2 * 32 * 2 * t.hidden));
  CHECK(count(with_bias.forward) - count(base.forward) == 2 * 8);
  CHECK(count(with_bias.backward_input) - count(base.backward_input) == 5 * 8);
  // Half of the scores are inside the causal mask.
  sinks.kernels.sink_bytes = 30;
  CHECK(moved(whole(sinks)) - moved(base) == Approx(30 * 2 * t.heads * 32 * 32 / 2));
  sinks.attention = pass.attention = AttentionKernels::unfused;
  CHECK(moved(whole(sinks)) == moved(whole(pass)));
  t.attention_sinks = false;
  sinks.attention = pass.attention = AttentionKernels::flash_3;
  CHECK(moved(whole(sinks)) == moved(whole(pass)));
}

TEST_CASE("kernels on routed rows are known, and how many experts' products they hold") {
  PassShape pass;
  pass.micro_batch = 1;
  pass.sequence_length = 32;
  const auto count = [&](double experts, bool products) {
    const LayerCost layer = layer_costs(transformer(small(experts, 2, 96)), pass)[1];
    double sum = 0;
    for (const auto* kernels : {&layer.forward, &layer.backward_input, &layer.backward_weight})
      for (const Kernel& kernel : *kernels)
        if (kernel.routed) sum += !products ? 1 : kernel.kind == Kernel::Kind::gemm ? kernel.launches : 0;
    return sum;
  };
  // Dispatch and combine, forward and backward; two products in each of three passes; SwiGLU, twice.
  CHECK(count(8, false) == 4 + 6 + 2);
  CHECK(count(8, true) == 6 * 8);
  CHECK(count(1000, true) == 6 * 64);  // of 1000 experts, 64 have a row
  CHECK(count(0, false) == 0);
}
