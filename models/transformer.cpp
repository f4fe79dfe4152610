// The kernels of transformers as Megatron-LM runs them: matrix products by cuBLAS, unfused attention, and the
// fused element-wise kernels scale+mask+softmax (with ALiBi, whose slopes are no traffic), bias+GELU,
// bias+SwiGLU, bias+dropout+add and rotary positions.
//
// Sources. FLOPs: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM", SC'21, appendix and eq. 3. Saved activations: Korthikanti et al., "Reducing Activation
// Recomputation in Large Transformer Models", 2022, section 4: s b h (34 + 5 a s / h) bytes a layer at 16
// bits. Memory traffic: each kernel reads its operands and writes its results once. At 1.6 TB/s (0.8 of an
// A100's 2.0 TB/s) the forward kernels below take 0.75 ms (softmax, dropout) and 0.82 ms (the others) in the
// 22B layer of Korthikanti's table 4 (micro-batch 4, tensor parallel 8), whose forward pass was measured
// as 7.7 ms.
#include <algorithm>

#include "models/kernels.hpp"

namespace rehearse {
namespace {

using Kind = Kernel::Kind;
constexpr double kMask = 1;  // bytes of a dropout mask's element

struct Sizes {
  double element, samples, sequence, tokens, hidden, inner, heads;
  double key_width;   // of the keys, and of the values: less than hidden if heads share them
  double activation;  // bytes of one tensor [tokens, hidden]
  double keys;        // bytes of one tensor [tokens, key_width]
  double scores;      // elements of the attention matrices of all heads
};

Sizes sizes_of(const Transformer& t, const PassShape& pass) {
  Sizes z{};
  z.element = element_bytes(pass.precision);
  z.samples = pass.micro_batch;
  z.sequence = pass.sequence_length > 0 ? pass.sequence_length : t.sequence_length;
  z.tokens = z.samples * z.sequence;
  z.hidden = t.hidden;
  z.inner = t.feed_forward > 0 ? t.feed_forward : 4 * t.hidden;
  z.heads = t.heads;
  z.key_width = t.kv_heads > 0 ? t.hidden * t.kv_heads / t.heads : t.hidden;
  z.activation = z.element * z.tokens * z.hidden;
  z.keys = z.element * z.tokens * z.key_width;
  z.scores = z.samples * z.heads * z.sequence * z.sequence;
  return z;
}

// Layer norm forward reads x and writes y. Backward reads x and dy and writes dx; a second kernel reads x and
// dy again for the gradients of gain and offset. An RMS norm moves the same.
void add_norm(LayerCost& layer, const Transformer& t, const Sizes& z) {
  layer.parameters += (t.biases ? 2 : 1) * z.hidden;
  layer.forward.push_back(moves(2 * z.activation));
  layer.backward_input.push_back(moves(3 * z.activation));
  layer.backward_weight.push_back(moves(2 * z.activation));
}

// A linear layer's bias; `fused` says that another kernel adds it.
void add_bias(LayerCost& layer, const Sizes& z, double width, bool fused) {
  layer.parameters += width;
  const double bytes = z.element * z.tokens * width;
  if (!fused) layer.forward.push_back(moves(2 * bytes));
  layer.backward_weight.push_back(moves(bytes));  // summed over the tokens
}

// Bias, dropout and residual in one kernel: reads x and the residual, writes the sum and the mask. Backward
// reads dy and the mask and writes dx (without dropout dx is dy); then the two gradients that meet where the
// residual branched off are added.
void add_dropout_residual(LayerCost& layer, const Transformer& t, const Sizes& z) {
  const double mask = t.dropout ? kMask * z.tokens * z.hidden : 0;
  layer.forward.push_back(moves(3 * z.activation + mask));
  if (t.dropout) layer.backward_input.push_back(moves(2 * z.activation + mask));
  layer.backward_input.push_back(moves(3 * z.activation));
}

void add_gelu(LayerCost& layer, double bytes) {
  layer.forward.push_back(moves(2 * bytes));
  layer.backward_input.push_back(moves(3 * bytes));
}

// SiLU of one half of the first product times its other half. Backward reads dy and both halves and writes
// the gradient of both.
void add_swiglu(LayerCost& layer, double bytes) {
  layer.forward.push_back(moves(3 * bytes));
  layer.backward_input.push_back(moves(5 * bytes));
}

// Softmax(Q K^T) V, with its own forward list because selective recomputation repeats just this part.
std::vector<Kernel> attention_forward(const Transformer& t, const Sizes& z) {
  const double s = z.sequence, head = z.hidden / z.heads, batch = z.samples * z.heads;
  std::vector<Kernel> kernels;
  // Keys and values that heads share are repeated for each of them.
  if (z.key_width < z.hidden) kernels.push_back(moves(2 * (z.keys + z.activation)));
  kernels.push_back(product(Kind::attention, s, s, head, z.element, batch));
  kernels.push_back(moves(2 * z.element * z.scores));  // scale, mask, softmax
  if (t.dropout) kernels.push_back(moves((2 * z.element + kMask) * z.scores));
  kernels.push_back(product(Kind::attention, s, head, s, z.element, batch));
  kernels.push_back(moves(2 * z.activation));  // heads back side by side
  return kernels;
}

std::vector<Kernel> attention_backward(const Transformer& t, const Sizes& z) {
  const double s = z.sequence, head = z.hidden / z.heads, batch = z.samples * z.heads;
  std::vector<Kernel> kernels = {
      moves(2 * z.activation),                                 // heads apart
      product(Kind::attention, s, s, head, z.element, batch),  // dP = dO V^T
      product(Kind::attention, s, head, s, z.element, batch),  // dV = P^T dO
  };
  if (t.dropout) kernels.push_back(moves((2 * z.element + kMask) * z.scores));
  kernels.push_back(moves(3 * z.element * z.scores));  // softmax: reads P and dP, writes dS
  kernels.push_back(product(Kind::attention, s, head, s, z.element, batch));  // dQ = dS K
  kernels.push_back(product(Kind::attention, s, head, s, z.element, batch));  // dK = dS^T Q
  // The gradients of repeated keys and values are summed over the heads that share them.
  if (z.key_width < z.hidden) kernels.push_back(moves(2 * (z.activation + z.keys)));
  kernels.push_back(moves(2 * (z.activation + 2 * z.keys)));  // dQ, dK, dV to one tensor
  return kernels;
}

void add_attention(LayerCost& layer, const Transformer& t, const Sizes& z) {
  const double width = z.hidden + 2 * z.key_width;
  add_linear(layer, z.tokens, width, z.hidden, z.element);
  if (t.qkv_biases) add_bias(layer, z, width, false);
  if (t.rotary) {  // each way reads and writes queries and keys
    layer.forward.push_back(moves(2 * (z.activation + z.keys)));
    layer.backward_input.push_back(moves(2 * (z.activation + z.keys)));
  }
  append(layer.forward, attention_forward(t, z));
  append(layer.backward_input, attention_backward(t, z));
  add_linear(layer, z.tokens, z.hidden, z.hidden, z.element);
  if (t.biases) add_bias(layer, z, z.hidden, true);
}

// The rows that a feed-forward sees, and how many sets of weights they are spread over.
struct Spread {
  double rows = 0;
  double sets = 1;  // that there are
  double used = 1;  // that have rows, equally many: one grouped product does all of them
};

void add_spread_linear(LayerCost& layer, const Transformer& t, const Sizes& z, const Spread& s, double out,
                       double in) {
  layer.parameters += s.sets * in * out;
  const double rows = s.rows / s.used;
  layer.forward.push_back(product(Kind::gemm, rows, out, in, z.element, s.used));
  layer.backward_input.push_back(product(Kind::gemm, rows, in, out, z.element, s.used));
  layer.backward_weight.push_back(product(Kind::gemm, out, in, rows, z.element, s.used));
  if (!t.biases) return;  // the next kernel adds the bias; its gradient is summed over the rows
  layer.parameters += s.sets * out;
  layer.backward_weight.push_back(moves(z.element * s.rows * out));
}

void add_inner_and_outer(LayerCost& layer, const Transformer& t, const Sizes& z, const Spread& s,
                         double inner) {
  add_spread_linear(layer, t, z, s, t.gated ? 2 * inner : inner, z.hidden);
  const double bytes = z.element * s.rows * inner;
  if (t.gated) {
    add_swiglu(layer, bytes);
  } else {
    add_gelu(layer, bytes);
  }
  add_spread_linear(layer, t, z, s, z.hidden, inner);
}

// The inputs of the activation function (of SwiGLU: two) and of the second product.
double saved_inside(const Transformer& t, const Sizes& z, double rows, double inner) {
  return (t.gated ? 3 : 2) * z.element * rows * inner;
}

// Lepikhin et al., "GShard", 2020, and Jiang et al., "Mixtral of Experts", 2024, section 2.1: a linear
// router, softmax over the chosen experts, their weighted sum. Rows are copied in order of their experts, go
// through grouped products, and are put back (Gale et al., "MegaBlocks", 2022). The router is taken to spread
// tokens evenly, which is what its auxiliary loss asks for; no token is dropped.
void add_experts(LayerCost& layer, const Transformer& t, const Sizes& z) {
  constexpr double kProbability = 4;  // fp32
  const double chosen = t.experts_per_token;
  Spread routed{chosen * z.tokens, t.experts, 0};
  routed.used = std::min(t.experts, routed.rows);
  add_linear(layer, z.tokens, t.experts, z.hidden, z.element);
  const double logits = kProbability * z.tokens * t.experts;
  layer.forward.push_back(moves(2 * logits));  // softmax, and the choice
  layer.backward_input.push_back(moves(3 * logits));
  // To the experts: each row is read and written; backwards the copies' gradients are added up.
  layer.forward.push_back(moves(2 * chosen * z.activation));
  layer.backward_input.push_back(moves((chosen + 1) * z.activation));
  add_inner_and_outer(layer, t, z, routed, z.inner);
  // And back: their weighted sum. Backwards each result is read again, for the gradient of its weight.
  layer.forward.push_back(moves((chosen + 1) * z.activation));
  layer.backward_input.push_back(moves((2 * chosen + 1) * z.activation));
  if (t.shared_expert > 0) {
    add_inner_and_outer(layer, t, z, {z.tokens, 1, 1}, t.shared_expert);
    layer.parameters += z.hidden;  // its gate: a product with one column, a sigmoid
    layer.forward.push_back(moves(4 * z.activation));
    layer.backward_input.push_back(moves(5 * z.activation));
    layer.backward_weight.push_back(moves(z.activation));
  }
}

void add_feed_forward(LayerCost& layer, const Transformer& t, const Sizes& z) {
  if (t.experts > 0) {
    add_experts(layer, t, z);
  } else {
    add_inner_and_outer(layer, t, z, {z.tokens, 1, 1}, z.inner);
  }
}

// Of the feed-forward, beside the input of its first product.
double saved_by_feed_forward(const Transformer& t, const Sizes& z) {
  if (t.experts == 0) return saved_inside(t, z, z.tokens, z.inner);
  // The rows in their experts' order, and the experts' results.
  double bytes = 2 * t.experts_per_token * z.activation +
                 saved_inside(t, z, t.experts_per_token * z.tokens, z.inner) + 4 * z.tokens * t.experts;
  if (t.shared_expert > 0) bytes += saved_inside(t, z, z.tokens, t.shared_expert) + z.activation;
  return bytes;
}

LayerCost transformer_layer(const Transformer& t, const Sizes& z, Recompute recompute) {
  LayerCost layer;
  add_norm(layer, t, z);
  add_attention(layer, t, z);
  add_dropout_residual(layer, t, z);
  add_norm(layer, t, z);
  add_feed_forward(layer, t, z);
  add_dropout_residual(layer, t, z);

  layer.output_bytes = z.activation;
  if (recompute == Recompute::full) {
    layer.recompute = layer.forward;
    layer.saved_bytes = z.activation;
    return layer;
  }
  // Inputs of the two norms, of the products QKV, projection and first of the MLP, and Q; two masks.
  layer.saved_bytes = 6 * z.activation + (t.dropout ? 2 * kMask * z.tokens * z.hidden : 0);
  layer.saved_bytes += saved_by_feed_forward(t, z);
  if (recompute == Recompute::selective) {
    layer.recompute = attention_forward(t, z);
    layer.saved_bytes += 2 * z.keys;
  } else {  // K and V as the products read them; softmax, its mask, dropped-out softmax
    layer.saved_bytes += 2 * z.activation + (t.dropout ? 2 * z.element + kMask : z.element) * z.scores;
  }
  return layer;
}

LayerCost embedding(const Transformer& t, const Sizes& z) {
  LayerCost layer;
  layer.name = "embedding";
  // A table's gradient is a dense tensor: it is zeroed, then dy's rows are added to its rows.
  const auto look_up = [&](double rows) {
    layer.parameters += rows * z.hidden;
    layer.forward.push_back(moves(2 * z.activation));
    layer.backward_weight.push_back(moves(z.element * rows * z.hidden + 3 * z.activation));
  };
  look_up(t.vocabulary);
  for (const double rows : {t.positions, t.token_types}) {
    if (rows == 0) continue;
    look_up(rows);
    layer.forward.push_back(moves(3 * z.activation));
  }
  if (t.embedding_norm) {
    add_norm(layer, t, z);
    layer.saved_bytes += z.activation;
  }
  if (t.dropout) {
    const Kernel dropout = moves(2 * z.activation + kMask * z.tokens * z.hidden);
    layer.forward.push_back(dropout);
    layer.backward_input.insert(layer.backward_input.begin(), dropout);
    layer.saved_bytes += kMask * z.tokens * z.hidden;
  }
  if (t.tied_embeddings) {  // the output layer's gradient of the same table is added
    layer.backward_weight.push_back(moves(3 * z.element * t.vocabulary * z.hidden));
  }
  layer.output_bytes = z.activation;
  return layer;
}

// Final norm, logits of all tokens, loss; BERT's pooler and masked-language-model transform.
LayerCost head(const Transformer& t, const Sizes& z) {
  LayerCost layer;
  layer.name = "head";
  if (t.final_norm) {
    add_norm(layer, t, z);
    layer.saved_bytes += z.activation;
  }
  if (t.pooler) {  // first token of each sample: linear, tanh
    add_linear(layer, z.samples, z.hidden, z.hidden, z.element);
    const double pooled = z.element * z.samples * z.hidden;
    layer.parameters += z.hidden;
    layer.forward.push_back(moves(2 * pooled));
    layer.backward_input.push_back(moves(3 * pooled));
    layer.saved_bytes += 2 * pooled;
    if (t.masked_lm_head) {  // next-sentence classifier
      add_linear(layer, z.samples, 2, z.hidden, z.element);
      layer.parameters += 2;
    }
  }
  if (t.masked_lm_head) {
    add_linear(layer, z.tokens, z.hidden, z.hidden, z.element);
    add_bias(layer, z, z.hidden, true);
    add_gelu(layer, z.activation);
    add_norm(layer, t, z);
    layer.saved_bytes += 3 * z.activation;
  }
  if (t.causal || t.masked_lm_head) {
    const double table = t.vocabulary * z.hidden;
    add_linear(layer, z.tokens, t.vocabulary, z.hidden, z.element);
    if (t.tied_embeddings) layer.parameters -= table;  // the embedding has counted it
    if (t.masked_lm_head) add_bias(layer, z, t.vocabulary, false);
    add_loss(layer, z.tokens * t.vocabulary, z.element);
    layer.saved_bytes += z.activation;  // input of the output layer: Korthikanti section 4.3
  }
  return layer;
}

}  // namespace

std::vector<LayerCost> transformer_layers(const Transformer& t, const PassShape& pass) {
  const Sizes z = sizes_of(t, pass);
  std::vector<LayerCost> layers;
  layers.reserve(static_cast<std::size_t>(t.layers) + 2);
  layers.push_back(embedding(t, z));
  LayerCost layer = transformer_layer(t, z, pass.recompute);
  for (int i = 0; i < t.layers; ++i) {
    layer.name = "layer" + std::to_string(i);
    layers.push_back(layer);
  }
  layers.push_back(head(t, z));
  return layers;
}

}  // namespace rehearse
