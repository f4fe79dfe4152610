// Attention: unfused, with its scores in memory, as Megatron-LM runs it, with a fused kernel for scale, mask
// and softmax (and ALiBi, whose slopes are no traffic, and soft-capping).
//
// Sliding windows: Beltagy et al., "Longformer", 2020; Jiang et al., "Mistral 7B", 2023, section 2. A kernel
// that forms all scores and masks most of them gains nothing by a window, so that whoever trains with one has
// kernels that skip what lies outside: a query here has `window` scores.
// Multi-head latent attention: DeepSeek-V2, 2024 (arXiv 2405.04434), section 2.1.2 and equations 37 to 47. In
// training the compressed vectors are expanded, and attention is that of as many keys as heads.
// QK norms: Gemma 3 (arXiv 2503.19786), section 2; Qwen3 (arXiv 2505.09388), section 2. Soft-capping: Gemma 2
// (arXiv 2408.00118), section 2. Sinks: gpt-oss model card (arXiv 2508.10925), section 2.2.
#include <algorithm>

#include "models/transformer_parts.hpp"

namespace rehearse {
namespace {

using Kind = Kernel::Kind;
constexpr double kMask = 1;  // bytes of a dropout mask's element

bool has_dropout(const Transformer& t) {
  return t.attention_dropout.value_or(t.dropout);
}

bool heads_share_keys(const Sizes& z) {
  return z.keys < z.queries;
}

// Keys that a query sees.
double seen_keys(const Transformer& t, const Sizes& z, bool local) {
  return local ? std::min(t.window, z.sequence) : z.sequence;
}

// Elements of the attention matrices of all heads.
double score_count(const Transformer& t, const Sizes& z, bool local) {
  return z.samples * z.heads * z.sequence * seen_keys(t, z, local);
}

// A product with `seen` scores for each query and `width` elements for each query and each key. Whether the
// scores are a factor or the result, all three matrices pass through memory once.
Kernel attention_product(const Sizes& z, double m, double n, double k, double seen, double width) {
  Kernel kernel = product(Kind::attention, m, n, k, z.element, z.samples * z.heads);
  kernel.bytes = z.element * kernel.batch * (z.sequence * seen + 2 * z.sequence * width);
  return kernel;
}

std::vector<Kernel> attention_backward(const Transformer& t, const Sizes& z, bool local) {
  const double s = z.sequence, seen = seen_keys(t, z, local), scores = score_count(t, z, local);
  std::vector<Kernel> kernels = {
      moves(2 * z.bytes(z.context)),                                    // heads apart
      attention_product(z, s, seen, z.value_head, seen, z.value_head),  // dP = dO V^T
      attention_product(z, s, z.value_head, seen, seen, z.value_head),  // dV = P^T dO
  };
  if (has_dropout(t)) kernels.push_back(moves((2 * z.element + kMask) * scores));
  // Softmax reads P and dP and writes dS; the derivative of soft-capping needs the scores, too.
  kernels.push_back(moves((t.attention_softcap ? 4 : 3) * z.element * scores));
  kernels.push_back(attention_product(z, s, z.head, seen, seen, z.head));  // dQ = dS K
  kernels.push_back(attention_product(z, s, z.head, seen, seen, z.head));  // dK = dS^T Q
  // The gradients of repeated keys and values are summed over the heads that share them.
  if (heads_share_keys(z)) kernels.push_back(moves(z.bytes(z.queries + z.context + z.keys + z.values)));
  // dQ, dK, dV to one tensor. Latent attention has two products to hand them to.
  if (t.kv_lora_rank == 0) kernels.push_back(moves(2 * z.bytes(z.queries + z.keys + z.values)));
  return kernels;
}

void add_both_ways(LayerCost& layer, double bytes) {
  layer.forward.push_back(moves(bytes));
  layer.backward_input.push_back(moves(bytes));
}

void add_queries_keys_values(LayerCost& layer, const Transformer& t, const Sizes& z) {
  const double width = z.queries + z.keys + z.values;
  add_linear(layer, z.tokens, width, z.hidden, z.element);
  if (t.qkv_biases) add_bias(layer, z, width, false);
  if (t.qk_norm) {  // each head by itself, all heads with the same gain
    add_norm(layer, z, z.queries, z.head);
    add_norm(layer, z, z.keys, z.head);
  }
  // Each way reads and writes queries and keys. Where a part of each head is turned (GPT-NeoX's rotary_pct),
  // Transformer Engine's kernel copies the rest.
  if (t.rotary) add_both_ways(layer, 2 * z.bytes(z.queries + z.keys));
}

// Megatron-LM's kernels (fused_mla_yarn_rope_apply) turn the rotary part of the queries in place; another one
// reads the expanded keys and values and the shared rotary key, and writes the keys of all heads and the
// values.
void add_latent_queries_keys_values(LayerCost& layer, const Transformer& t, const Sizes& z) {
  const double rope = t.rope_head_dim, plain_keys = z.heads * (z.head - rope);
  if (t.q_lora_rank > 0) {
    add_linear(layer, z.tokens, t.q_lora_rank, z.hidden, z.element);
    add_norm(layer, z, t.q_lora_rank, t.q_lora_rank);
    add_linear(layer, z.tokens, z.queries, t.q_lora_rank, z.element);
  } else {
    add_linear(layer, z.tokens, z.queries, z.hidden, z.element);
  }
  add_linear(layer, z.tokens, t.kv_lora_rank + rope, z.hidden, z.element);
  add_norm(layer, z, t.kv_lora_rank, t.kv_lora_rank);
  add_linear(layer, z.tokens, plain_keys + z.values, t.kv_lora_rank, z.element);
  add_both_ways(layer, 2 * z.bytes(z.heads * rope));
  add_both_ways(layer, z.bytes(plain_keys + z.values + rope + z.queries + z.values));
  layer.backward_input.push_back(moves(3 * z.activation));  // the input's gradients of both products added
}

}  // namespace

std::vector<Kernel> attention_forward(const Transformer& t, const Sizes& z, bool local) {
  const double s = z.sequence, seen = seen_keys(t, z, local), scores = score_count(t, z, local);
  std::vector<Kernel> kernels;
  // Keys and values that heads share are repeated for each of them.
  if (heads_share_keys(z)) kernels.push_back(moves(z.bytes(z.keys + z.values + z.queries + z.context)));
  kernels.push_back(attention_product(z, s, seen, z.head, seen, z.head));
  kernels.push_back(moves(2 * z.element * scores));  // scale, soft-capping, mask, softmax
  if (has_dropout(t)) kernels.push_back(moves((2 * z.element + kMask) * scores));
  kernels.push_back(attention_product(z, s, z.value_head, seen, seen, z.value_head));
  kernels.push_back(moves(2 * z.bytes(z.context)));  // heads back side by side
  return kernels;
}

void add_attention(LayerCost& layer, const Transformer& t, const Sizes& z, bool local) {
  if (t.kv_lora_rank > 0) {
    add_latent_queries_keys_values(layer, t, z);
  } else {
    add_queries_keys_values(layer, t, z);
  }
  append(layer.forward, attention_forward(t, z, local));
  append(layer.backward_input, attention_backward(t, z, local));
  if (t.attention_sinks) {  // gradients: sums over the tokens of each one's share of its sink
    layer.parameters += z.heads;
    layer.backward_weight.push_back(moves(z.bytes(z.heads)));
  }
  add_linear(layer, z.tokens, z.hidden, z.context, z.element);
  if (t.biases) add_bias(layer, z, z.hidden, true);
}

double saved_by_attention(const Transformer& t, const Sizes& z, bool local, Recompute recompute) {
  double bytes = z.bytes(z.queries + z.context);         // Q, and the input of the output projection
  if (t.qk_norm) bytes += z.bytes(z.queries + z.keys);   // inputs of the norms
  bytes += 2 * z.bytes(t.q_lora_rank + t.kv_lora_rank);  // inputs of these norms, and of the products
  if (recompute == Recompute::selective) return bytes + z.bytes(z.keys + z.values);
  // K and V as the products read them; softmax, its mask, dropped-out softmax; scores; shares of the sinks
  bytes += z.bytes(z.queries + z.context);
  const double scores = score_count(t, z, local);
  bytes += (has_dropout(t) ? 2 * z.element + kMask : z.element) * scores;
  if (t.attention_softcap) bytes += z.element * scores;
  if (t.attention_sinks) bytes += z.bytes(z.heads);
  return bytes;
}

}  // namespace rehearse
