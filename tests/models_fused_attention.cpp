// Checks what fused attention computes, moves and stores, compared with the unfused kernels of the same
// layer.
#include "models/kernels.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

constexpr double kRowsOfBatch = 2, kTokensOfRow = 1024, kHeadsOfLayer = 8, kHead = 64;

Transformer shape(bool causal, double window = 0) {
  Transformer t;
  t.layers = 1;
  t.heads = kHeadsOfLayer;
  t.hidden = kHeadsOfLayer * kHead;
  t.vocabulary = 16;
  t.sequence_length = kTokensOfRow;
  t.causal = causal;
  t.masked_lm_head = !causal;
  t.window = window;
  t.dropout = false;
  return t;
}

PassShape pass_of(AttentionKernels kernels) {
  PassShape pass;
  pass.micro_batch = kRowsOfBatch;
  pass.attention = kernels;
  return pass;
}

Segment attention_of(const Transformer& t, const PassShape& pass) {
  for (const Layer& layer : transformer_layers(t, pass))
    for (const Segment& segment : layer.segments)
      if (segment.kind == SegmentKind::attention) return segment;
  FAIL("no attention");
  return {};
}

double computed(const std::vector<Kernel>& kernels) {
  double flops = 0;
  for (const Kernel& kernel : kernels) flops += kernel.flops();
  return flops;
}

}  // namespace

TEST_CASE(
    "fused attention computes what the mask leaves, 2.5 times as much backward, and counts as the model") {
  struct Case {
    const char* what;
    Transformer t;
    double keys;  // mean number of keys that a query attends to
  };
  for (const Case& c : {
           Case{"no mask", shape(false), kTokensOfRow},
           Case{"a causal mask hides half", shape(true), kTokensOfRow / 2},
           // The first 256 queries attend to 128 keys on average, the others to 256.
           Case{"a window of a quarter", shape(true, 256), 0.25 * 128 + 0.75 * 256},
       }) {
    CAPTURE(c.what);
    const Segment fused = attention_of(c.t, pass_of(AttentionKernels::flash_2));
    const Segment unfused = attention_of(c.t, pass_of(AttentionKernels::unfused));
    // Two products of [s, keys] and heads of 64, two FLOPs (multiply and add) for each element.
    const double flops = 2 * 2 * kRowsOfBatch * kHeadsOfLayer * kTokensOfRow * c.keys * kHead;
    CHECK(computed(fused.cost.forward) == Approx(flops));
    CHECK(computed(fused.cost.backward_input) == Approx(2.5 * flops));
    CHECK(product_flops(fused.cost.forward) == Approx(product_flops(unfused.cost.forward)));
    CHECK(product_flops(fused.cost.backward_input) == Approx(product_flops(unfused.cost.backward_input)));
  }
}

TEST_CASE("fused attention neither moves nor keeps scores, and leaves nothing to recompute") {
  const double tensor =
      2 * kRowsOfBatch * kTokensOfRow * kHeadsOfLayer * kHead;  // bytes of queries, keys, values or result
  const double logarithms = 4 * kRowsOfBatch * kTokensOfRow * kHeadsOfLayer;
  PassShape pass = pass_of(AttentionKernels::flash_1);
  const Segment fused = attention_of(shape(true), pass);
  REQUIRE(fused.cost.forward.size() == 1);
  CHECK(fused.cost.forward[0].bytes == 4 * tensor + logarithms);
  // Three kernels: row sums of dO O; the gradients' kernel, which reads Q, K, V, dO and writes dQ, dK, dV;
  // copying the gradients into one tensor.
  REQUIRE(fused.cost.backward_input.size() == 3);
  CHECK(fused.cost.backward_input[0].bytes == 2 * tensor);
  CHECK(fused.cost.backward_input[1].bytes == 7 * tensor + 2 * logarithms);
  CHECK(fused.cost.backward_input[2].bytes == 6 * tensor);
  CHECK(fused.cost.saved_bytes == 3 * tensor + logarithms);  // the result counts as the projection's input
  pass.recompute = Recompute::selective;
  const Segment selective = attention_of(shape(true), pass);
  CHECK(selective.cost.recompute.empty());
  CHECK(selective.cost.saved_bytes == fused.cost.saved_bytes);

  SECTION("keys and values that heads share are read as they are") {
    Transformer grouped = shape(true);
    grouped.kv_heads = 2;
    const Segment few = attention_of(grouped, pass_of(AttentionKernels::flash_2));
    CHECK(few.cost.forward.size() == 1);
    CHECK(few.cost.forward[0].bytes == 2.5 * tensor + logarithms);
    CHECK(few.cost.saved_bytes == 1.5 * tensor + logarithms);
    CHECK(few.cost.backward_input.size() == 4);  // a separate kernel sums the gradients of shared heads
    CHECK(attention_of(grouped, pass_of(AttentionKernels::flash_3)).cost.backward_input.size() ==
          3);  // FlashAttention-3 needs no such kernel
  }
}

TEST_CASE("in a ring fused attention computes as much as on one device, in all") {
  for (const bool zigzag : {true, false})
    for (const int ranks : {2, 4}) {
      CAPTURE(zigzag, ranks);
      PassShape pass = pass_of(AttentionKernels::flash_2);
      const Segment whole = attention_of(shape(true), pass);
      for (const SegmentKind kind : {SegmentKind::query, SegmentKind::attention, SegmentKind::norm}) {
        pass.splits.multiply(kind, Dim::sequence, ranks);
      }
      pass.ring = {ranks, zigzag};
      const Segment ring = attention_of(shape(true), pass);
      double flops = 0, model = 0;
      for (const RingStep& step : ring.steps) {
        const double share = static_cast<double>(ranks - step.first_rank) / ranks;
        flops += share * computed(step.forward);
        model += step.masked * share * product_flops(step.forward);
      }
      CHECK(flops * ranks == Approx(computed(whole.cost.forward)));
      // Without fused kernels, each rank computes all scores of the diagonal block.
      PassShape unfused = pass;
      unfused.attention = AttentionKernels::unfused;
      double counted = 0;
      for (const RingStep& step : attention_of(shape(true), unfused).steps)
        counted +=
            step.masked * static_cast<double>(ranks - step.first_rank) / ranks * product_flops(step.forward);
      CHECK(model == Approx(counted));
    }
}
