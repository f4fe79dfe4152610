// Checks recompute = "operators", and the kernels in which frameworks differ.
#include <string>

#include "models/kernels.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

constexpr double kSamples = 2, kSequence = 1024, kTokens = kSamples * kSequence, kHeads = 8, kHidden = 512,
                 kBytes = 2;

Transformer gpt() {
  Transformer t;
  t.layers = 1;
  t.heads = kHeads;
  t.hidden = kHidden;
  t.vocabulary = 16;
  t.sequence_length = kSequence;
  t.dropout = false;
  return t;
}

// Returns a Llama with half as many key heads as query heads and a gated feed-forward network of twice the
// hidden width.
constexpr double kKeys = kHidden / 2, kInner = 2 * kHidden;
Transformer llama() {
  Transformer t = gpt();
  t.kv_heads = kHeads / 2;
  t.feed_forward = kInner;
  t.gated = t.rotary = true;
  t.biases = t.qkv_biases = false;
  return t;
}

PassShape pass_of(Recompute recompute) {
  PassShape pass;
  pass.micro_batch = kSamples;
  pass.attention = AttentionKernels::flash_2;
  pass.recompute = recompute;
  return pass;
}

LayerCost layer_of(const Transformer& t, const PassShape& pass) {
  return merged(transformer_layers(t, pass).at(1));
}

double flops_of_products(const std::vector<Kernel>& kernels) {
  double flops = 0;
  for (const Kernel& kernel : kernels)
    if (kernel.kind == Kernel::Kind::gemm) flops += kernel.flops();
  return flops;
}

double moved(const std::vector<Kernel>& kernels) {
  double bytes = 0;
  for (const Kernel& kernel : kernels)
    if (kernel.kind == Kernel::Kind::memory) bytes += kernel.bytes;
  return bytes;
}

double moved(const LayerCost& layer) {
  return moved(layer.forward) + moved(layer.backward_input) + moved(layer.backward_weight);
}

}  // namespace

// torchtitan's policy: of W_Q, W_K, W_V, W_O, W_1, W_3, W_2 every second product is recomputed; no gradient
// reads the result of the last. Stored are the layer's input, the other products' results, and attention's
// result with its log-sum-exps in fp32.
TEST_CASE("recomputing operators repeats every second product") {
  Transformer post = llama();
  post.post_norms = true;
  Transformer unread = gpt();
  struct Case {
    const char* what;
    Transformer t;
    double products, kept;  // elements of weights; widths of the stored tensors
  };
  for (const Case& c : {
           Case{"gated: W_K, W_O and W_3", llama(), kHidden * (kKeys + kHidden + kInner),
                kHidden + (kHidden + kKeys + kInner) + kHidden},
           Case{"not gated: W_K and W_O", unread, kHidden * (kHidden + kHidden),
                kHidden + (kHidden + kHidden + 4 * kHidden) + kHidden},
           Case{"norms behind both parts: the last product is read", post,
                kHidden * (kKeys + kHidden + kInner),
                kHidden + (kHidden + kKeys + kInner + kHidden) + kHidden},
       }) {
    CAPTURE(c.what);
    const LayerCost layer = layer_of(c.t, pass_of(Recompute::operators));
    CHECK(flops_of_products(layer.recompute) == Approx(2 * kTokens * c.products));
    CHECK(layer.saved_bytes == Approx(kBytes * kTokens * c.kept + 4 * kTokens * kHeads));
    for (const Kernel& kernel : layer.recompute) CHECK(kernel.kind != Kernel::Kind::fused_attention);
    // Forward and backward passes are those of a layer that stores all activations.
    const LayerCost whole = layer_of(c.t, pass_of(Recompute::none));
    CHECK(flops_of_products(layer.forward) == flops_of_products(whole.forward));
    CHECK(layer.saved_bytes < whole.saved_bytes);
    CHECK(moved(layer.recompute) < moved(layer.forward));
  }
}

TEST_CASE("what recomputation by autograd does not repeat") {
  PassShape pass = pass_of(Recompute::full);
  const LayerCost all = layer_of(llama(), pass);
  CHECK(flops_of_products(all.recompute) == Approx(flops_of_products(all.forward)));
  pass.kernels.autograd_checkpoints = true;  // does not repeat W_2 and the residual sum after it
  const LayerCost some = layer_of(llama(), pass);
  CHECK(flops_of_products(all.recompute) - flops_of_products(some.recompute) ==
        Approx(2 * kTokens * kHidden * kInner));
  CHECK(moved(all.recompute) - moved(some.recompute) == Approx(3 * kBytes * kTokens * kHidden));
  CHECK(some.saved_bytes == all.saved_bytes);
}

TEST_CASE("kernels of frameworks move what is given") {
  const PassShape fused = pass_of(Recompute::none);
  const LayerCost base = layer_of(llama(), fused);
  const auto more = [&](auto change) {
    PassShape pass = fused;
    change(pass);
    return moved(layer_of(llama(), pass)) - moved(base);
  };
  // Fused kernels move 14 bytes for each 16-bit element of a norm, 8 of rotary positions, 16 of SwiGLU.
  CHECK(more([](PassShape& p) { p.kernels.norm_bytes = 120; }) == Approx(2 * kTokens * kHidden * (120 - 14)));
  CHECK(more([](PassShape& p) { p.kernels.rotary_bytes = 40; }) ==
        Approx(kTokens * (kHidden + kKeys) * (40 - 8)));
  CHECK(more([](PassShape& p) { p.kernels.gate_bytes = 28; }) == Approx(kTokens * kInner * (28 - 16)));
  // Keys and values are read, and written once for each query head.
  CHECK(more([](PassShape& p) { p.kernels.expanded_keys = true; }) ==
        Approx(kBytes * kTokens * (2 * kKeys + 2 * kHidden)));
  // Casts read the inputs of the four segments with products and the gradients of their outputs; both are
  // also transposed in 8 bits, as are the weights.
  const double inputs = kTokens * (3 * kHidden + kInner),
               outputs = kTokens * (kHidden + 2 * kKeys + kHidden + 2 * kInner + kHidden),
               weights = kHidden * (kHidden + 2 * kKeys) + kHidden * kHidden + 2 * kHidden * kInner +
                         kInner * kHidden;
  const auto cast = [](PassShape& p) {
    p.kernels.cast_bytes = 5;
    p.precision = Precision::fp8;
  };
  CHECK(more(cast) == Approx(5 * (inputs + outputs) + 2 * (inputs + outputs + weights)));
  CHECK(more([](PassShape& p) { p.kernels.cast_bytes = 5; }) == 0);  // bf16 needs no casts
}

TEST_CASE("the product that makes the logits may keep its operands as they are") {
  PassShape pass = pass_of(Recompute::none);
  const auto wide = [&] {
    int count = 0;
    for (const Layer& layer : transformer_layers(llama(), pass))
      for (const Segment& segment : layer.segments)
        for (const auto* kernels :
             {&segment.cost.forward, &segment.cost.backward_input, &segment.cost.backward_weight})
          for (const Kernel& kernel : *kernels) count += kernel.wide ? 1 : 0;
    return count;
  };
  CHECK(wide() == 0);
  pass.kernels.wide_logits = true;
  CHECK(wide() == 3);
}
