// The kernels of transformers as Megatron-LM runs them: matrix products by cuBLAS, unfused attention
// (attention.cpp), and the fused element-wise kernels bias+activation, bias+gated activation,
// bias+dropout+add and rotary positions. Gemma's scaling of the embedding is part of the look-up.
//
// Sources. FLOPs: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM", SC'21, appendix and eq. 3. Saved activations: Korthikanti et al., "Reducing Activation
// Recomputation in Large Transformer Models", 2022, section 4: s b h (34 + 5 a s / h) bytes a layer at 16
// bits. Memory traffic: each kernel reads its operands and writes its results once. At 1.6 TB/s (0.8 of an
// A100's 2.0 TB/s) the forward kernels below take 0.75 ms (softmax, dropout) and 0.82 ms (the others) in the
// 22B layer of Korthikanti's table 4 (micro-batch 4, tensor parallel 8), whose forward pass was measured
// as 7.7 ms.
#include <algorithm>
#include <array>
#include <optional>

#include "models/transformer_parts.hpp"

namespace rehearse {
namespace {

using Kind = Kernel::Kind;
constexpr double kMask = 1;  // bytes of a dropout mask's element

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

// SiLU (or GELU) of one half of the first product times its other half. Backward reads dy and both halves and
// writes the gradient of both.
void add_swiglu(LayerCost& layer, double bytes) {
  layer.forward.push_back(moves(3 * bytes));
  layer.backward_input.push_back(moves(5 * bytes));
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

// The inputs of the activation function (of SwiGLU: two) and of the second product. ReLU needs its result
// alone, which is that input.
double saved_inside(const Transformer& t, const Sizes& z, double rows, double inner) {
  return (t.gated ? 3 : t.relu ? 1 : 2) * z.element * rows * inner;
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
  if (t.router_bias) add_bias(layer, z, t.experts, true);
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
  if (t.shared_expert == 0) return;
  add_inner_and_outer(layer, t, z, {z.tokens, 1, 1}, t.shared_expert);
  if (t.shared_expert_gate) {
    layer.parameters += z.hidden;  // its gate: a product with one column, a sigmoid
    layer.forward.push_back(moves(4 * z.activation));
    layer.backward_input.push_back(moves(5 * z.activation));
    layer.backward_weight.push_back(moves(z.activation));
  } else {  // both results added; backwards the gradients of their common input
    layer.forward.push_back(moves(3 * z.activation));
    layer.backward_input.push_back(moves(3 * z.activation));
  }
}

// In what a layer may differ from others of the same model.
struct LayerKind {
  bool local = false;    // with the sliding window
  bool experts = false;  // a mixture of them
};

double dense_width(const Transformer& t, const Sizes& z) {
  return t.experts > 0 ? t.dense_feed_forward : z.inner;
}

void add_feed_forward(LayerCost& layer, const Transformer& t, const Sizes& z, const LayerKind& kind) {
  if (kind.experts) {
    add_experts(layer, t, z);
  } else {
    add_inner_and_outer(layer, t, z, {z.tokens, 1, 1}, dense_width(t, z));
  }
}

// Of the feed-forward, beside the input of its first product.
double saved_by_feed_forward(const Transformer& t, const Sizes& z, const LayerKind& kind) {
  if (!kind.experts) return saved_inside(t, z, z.tokens, dense_width(t, z));
  // The rows in their experts' order, and the experts' results.
  double bytes = 2 * t.experts_per_token * z.activation +
                 saved_inside(t, z, t.experts_per_token * z.tokens, z.inner) + 4 * z.tokens * t.experts;
  if (t.shared_expert > 0) bytes += saved_inside(t, z, z.tokens, t.shared_expert);
  if (t.shared_expert > 0 && t.shared_expert_gate) bytes += z.activation;
  return bytes;
}

LayerCost transformer_layer(const Transformer& t, const Sizes& z, Recompute recompute,
                            const LayerKind& kind) {
  LayerCost layer;
  add_norm(layer, t, z);
  add_attention(layer, t, z, kind.local);
  if (t.post_norms) add_norm(layer, t, z);
  add_dropout_residual(layer, t, z);
  add_norm(layer, t, z);
  add_feed_forward(layer, t, z, kind);
  if (t.post_norms) add_norm(layer, t, z);
  add_dropout_residual(layer, t, z);

  layer.output_bytes = z.activation;
  if (recompute == Recompute::full) {
    layer.recompute = layer.forward;
    layer.saved_bytes = z.activation;
    return layer;
  }
  // Inputs of the norms (parallel branches have one in common) and of the products QKV and first of the MLP;
  // two masks.
  const double norm_inputs = (t.parallel_residual ? 1 : 2) + (t.post_norms ? 2 : 0);
  layer.saved_bytes = (norm_inputs + 2) * z.activation + (t.dropout ? 2 * kMask * z.tokens * z.hidden : 0);
  layer.saved_bytes += saved_by_attention(t, z, kind.local, recompute) + saved_by_feed_forward(t, z, kind);
  if (recompute == Recompute::selective) layer.recompute = attention_forward(t, z, kind.local);
  return layer;
}

LayerCost embedding(const Transformer& t, const Sizes& z) {
  LayerCost layer;
  layer.name = "embedding";
  // A table's gradient is a dense tensor: it is zeroed, then dy's rows are added to its rows.
  const auto look_up = [&](double rows, double width) {
    layer.parameters += rows * width;
    layer.forward.push_back(moves(2 * z.bytes(width)));
    layer.backward_weight.push_back(moves(z.element * rows * width + 3 * z.bytes(width)));
  };
  look_up(t.vocabulary, t.table_width());
  if (t.embedding_width > 0) {
    add_linear(layer, z.tokens, z.hidden, t.embedding_width, z.element);
    layer.saved_bytes += z.bytes(t.embedding_width);
  }
  for (const double rows : {t.position_rows(), t.token_types}) {
    if (rows == 0) continue;
    look_up(rows, z.hidden);
    layer.forward.push_back(moves(3 * z.activation));
  }
  if (t.embedding_norm) {
    add_norm(layer, t, z);
    layer.saved_bytes += z.activation;
  }
  if (t.embedding_dropout.value_or(t.dropout)) {
    const Kernel dropout = moves(2 * z.activation + kMask * z.tokens * z.hidden);
    layer.forward.push_back(dropout);
    layer.backward_input.insert(layer.backward_input.begin(), dropout);
    layer.saved_bytes += kMask * z.tokens * z.hidden;
  }
  if (t.tied_embeddings) {  // the output layer's gradient of the same table is added
    layer.backward_weight.push_back(moves(3 * z.element * t.vocabulary * t.table_width()));
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
    const double width = t.table_width(), logits = z.tokens * t.vocabulary;
    if (t.embedding_width > 0) {
      add_linear(layer, z.tokens, width, z.hidden, z.element);
      layer.saved_bytes += z.activation;
    }
    add_linear(layer, z.tokens, t.vocabulary, width, z.element);
    if (t.tied_embeddings) layer.parameters -= t.vocabulary * width;  // the embedding has counted it
    if (t.masked_lm_head) add_bias(layer, z, t.vocabulary, false);
    if (t.logit_softcap) {  // backward reads its result
      layer.forward.push_back(moves(2 * z.element * logits));
      layer.backward_input.push_back(moves(3 * z.element * logits));
      layer.saved_bytes += z.element * logits;
    }
    add_loss(layer, logits, z.element);
    layer.saved_bytes += z.bytes(width);  // input of the output layer: Korthikanti section 4.3
  }
  return layer;
}

bool contains(const std::vector<int>& layers, int layer) {
  return std::binary_search(layers.begin(), layers.end(), layer);
}

}  // namespace

Sizes sizes_of(const Transformer& t, const PassShape& pass) {
  Sizes z{};
  z.element = element_bytes(pass.precision);
  z.samples = pass.micro_batch;
  z.sequence = pass.sequence_length > 0 ? pass.sequence_length : t.sequence_length;
  z.tokens = z.samples * z.sequence;
  z.hidden = t.hidden;
  z.inner = t.feed_forward > 0 ? t.feed_forward : 4 * t.hidden;
  z.heads = t.heads;
  z.head = t.head_dim > 0 ? t.head_dim : t.hidden / t.heads;
  z.value_head = t.value_head_dim > 0 ? t.value_head_dim : z.head;
  const double kv_heads = t.kv_heads > 0 ? t.kv_heads : t.heads;
  z.queries = z.heads * z.head;
  z.keys = kv_heads * z.head;
  z.values = kv_heads * z.value_head;
  z.context = z.heads * z.value_head;
  z.activation = z.bytes(z.hidden);
  return z;
}

void add_norm(LayerCost& layer, const Sizes& z, double width, double parameters) {
  layer.parameters += parameters;
  layer.forward.push_back(moves(2 * z.bytes(width)));
  layer.backward_input.push_back(moves(3 * z.bytes(width)));
  layer.backward_weight.push_back(moves(2 * z.bytes(width)));
}

void add_norm(LayerCost& layer, const Transformer& t, const Sizes& z) {
  add_norm(layer, z, z.hidden, (t.norm_biases.value_or(t.biases) ? 2 : 1) * z.hidden);
}

void add_bias(LayerCost& layer, const Sizes& z, double width, bool fused) {
  layer.parameters += width;
  if (!fused) layer.forward.push_back(moves(2 * z.bytes(width)));
  layer.backward_weight.push_back(moves(z.bytes(width)));  // summed over the tokens
}

std::vector<LayerCost> transformer_layers(const Transformer& t, const PassShape& pass) {
  const Sizes z = sizes_of(t, pass);
  std::vector<LayerCost> layers;
  layers.reserve(static_cast<std::size_t>(t.layers) + 2);
  layers.push_back(embedding(t, z));
  std::array<std::optional<LayerCost>, 4> kinds;  // each written down once
  for (int i = 0; i < t.layers; ++i) {
    const LayerKind kind{t.window > 0 && !contains(t.full_attention_layers, i),
                         t.experts > 0 && !contains(t.dense_layers, i)};
    std::optional<LayerCost>& layer = kinds[(kind.local ? 1 : 0) + (kind.experts ? 2 : 0)];
    if (!layer) layer = transformer_layer(t, z, pass.recompute, kind);
    layers.push_back(*layer);
    layers.back().name = "layer" + std::to_string(i);
  }
  layers.push_back(head(t, z));
  return layers;
}

}  // namespace rehearse
