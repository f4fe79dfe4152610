// Writes the kernels of attention. Unfused attention stores its scores in memory, as Megatron-LM did until
// 2022, with a fused kernel for scale, mask and softmax (and ALiBi, whose slopes cause no traffic, and
// soft-capping). In fused attention only queries, keys, values and the result pass through memory, and of the
// softmax only the logarithm of each query's sum is stored (PassShape::attention).
//
// Sliding windows: Beltagy et al., "Longformer", 2020; Jiang et al., "Mistral 7B", 2023, section 2. A kernel
// that computes all scores and masks most of them gains nothing from a window. Training with a window
// therefore implies kernels that skip what is outside, so a query has `window` scores here.
// Multi-head latent attention: DeepSeek-V2, 2024 (arXiv 2405.04434), section 2.1.2 and equations 37 to 47. In
// training the compressed vectors are expanded, and attention then has as many keys as heads.
// QK norms: Gemma 3 (arXiv 2503.19786), section 2; Qwen3 (arXiv 2505.09388), section 2. Soft-capping: Gemma 2
// (arXiv 2408.00118), section 2. Sinks: gpt-oss model card (arXiv 2508.10925), section 2.2.
#include <algorithm>

#include "models/transformer_parts.hpp"

namespace rehearse {
namespace {

using Kind = Kernel::Kind;
bool has_dropout(const Transformer& t) {
  return t.attention_dropout.value_or(t.dropout);
}

bool heads_share_keys(const Sizes& z) {
  return z.keys < z.queries;
}

// Number of keys that a query attends to.
double seen_keys(const Transformer& t, const Sizes& z, bool local) {
  return local ? std::min(t.window, z.keys_length) : z.keys_length;
}

// Elements in the attention matrices of all heads if each query attends to `seen` keys.
double score_count(const Sizes& z, double seen) {
  return z.samples * z.heads * z.sequence * seen;
}

// A product with `seen` scores per query and `width` elements per query and per key. All three matrices pass
// through memory once, whether the scores are an operand or the result.
Kernel attention_product(const Sizes& z, double m, double n, double k, double seen, double width) {
  Kernel kernel = product(Kind::attention, m, n, k, z.element, z.samples * z.heads);
  kernel.bytes = z.element * kernel.batch * (z.sequence * seen + (z.sequence + z.keys_length) * width);
  return kernel;
}

std::vector<Kernel> attention_backward(const Transformer& t, const Sizes& z, double seen) {
  const double s = z.sequence, scores = score_count(z, seen), keys = z.keys_length;
  const double seers = seen * s / keys;  // queries that attend to a key
  std::vector<Kernel> kernels = {
      moves(2 * z.bytes(z.context)),                                        // separate the heads
      attention_product(z, s, seen, z.value_head, seen, z.value_head),      // dP = dO V^T
      attention_product(z, keys, z.value_head, seers, seen, z.value_head),  // dV = P^T dO
  };
  if (has_dropout(t)) kernels.push_back(moves((2 * z.element + kMask) * scores, 1 + kMask / z.element, 1));
  // Softmax reads P and dP and writes dS; the derivative of soft-capping also needs the scores.
  kernels.push_back(softmax_backward({z.element * scores, seen, z.element}, t.attention_softcap));
  kernels.push_back(attention_product(z, s, z.head, seen, seen, z.head));      // dQ = dS K
  kernels.push_back(attention_product(z, keys, z.head, seers, seen, z.head));  // dK = dS^T Q
  // The gradients of repeated keys and values are summed over the heads that share them.
  if (heads_share_keys(z))
    kernels.push_back(moves_between(z.key_bytes(z.queries + z.context + z.keys + z.values),
                                    z.queries + z.context, z.keys + z.values));
  // Packs dQ, dK and dV into one tensor. Latent attention passes them to two separate products instead.
  if (t.kv_lora_rank == 0)
    kernels.push_back(moves(2 * (z.bytes(z.queries) + z.key_bytes(z.keys + z.values))));
  return kernels;
}

void add_both_ways(LayerCost& layer, double bytes) {
  layer.forward.push_back(moves(bytes));
  layer.backward_input.push_back(moves(bytes));
}

double logarithms_of_sums(const Sizes& z) {
  constexpr double kFp32 = 4;
  return kFp32 * z.samples * z.heads * z.sequence;
}

// Average number of keys that a query attends to, out of at most `seen`: with a causal mask, early queries
// have fewer.
double seen_in_the_mean(const Sizes& z, double seen, bool masked) {
  return masked ? seen - seen * seen / (2 * z.keys_length) : seen;
}

// Combines all products of one pass of fused attention: [s, keys] by a total of `width` elements of queries,
// keys and values. The model's FLOPs count only `counted` of these elements, but with all `seen` keys.
Kernel fused_products(const PassShape& pass, const Sizes& z, double seen, bool masked, double width,
                      double counted) {
  Kernel kernel;
  kernel.kind = Kind::fused_attention;
  kernel.fused = pass.attention;
  kernel.m = z.sequence;
  kernel.n = seen_in_the_mean(z, seen, masked);
  kernel.k = width;
  kernel.batch = z.samples * z.heads;
  kernel.counted = counted / width * seen / kernel.n;
  return kernel;
}

// Q K^T and P V. `masked`: the mask is causal and the rank's own keys are among these.
std::vector<Kernel> fused_forward(const PassShape& pass, const Sizes& z, double seen, bool masked) {
  const double width = z.head + z.value_head;
  Kernel kernel = fused_products(pass, z, seen, masked, width, width);
  kernel.bytes = z.bytes(z.queries + z.context) + z.key_bytes(z.keys + z.values) + logarithms_of_sums(z);
  return {kernel};
}

// The five products of Dao et al. 2022, algorithm 4: Q K^T again, dP = dO V^T, dV, dQ and dK, which is 2.5
// times the forward pass. They follow a kernel that sums dO times O.
std::vector<Kernel> fused_backward(const Transformer& t, const PassShape& pass, const Sizes& z, double seen,
                                   bool masked) {
  Kernel kernel =
      fused_products(pass, z, seen, masked, 3 * z.head + 2 * z.value_head, 2 * (z.head + z.value_head));
  kernel.backward = true;
  kernel.bytes =
      z.bytes(2 * z.queries + z.context) + 2 * z.key_bytes(z.keys + z.values) + 2 * logarithms_of_sums(z);
  std::vector<Kernel> kernels = {moves(2 * z.bytes(z.context), 2, 0), kernel};
  // FlashAttention and FlashAttention-2 write gradients of keys and values for each head, and another kernel
  // sums them.
  if (heads_share_keys(z) && pass.attention != AttentionKernels::flash_3)
    kernels.push_back(moves_between(z.key_bytes(z.queries + z.context + z.keys + z.values),
                                    z.queries + z.context, z.keys + z.values));
  if (t.kv_lora_rank == 0)  // packs dQ, dK and dV into one tensor
    kernels.push_back(moves(2 * (z.bytes(z.queries) + z.key_bytes(z.keys + z.values))));
  return kernels;
}

// Sizes over all devices together.
Sizes whole_sizes(const TransformerWriter& to) {
  PassShape whole = to.pass;
  whole.splits = {};
  return TransformerWriter(to.t, whole, "").sizes(SegmentKind::attention);
}

// Each pass reads and writes queries and keys. If only a part of each head is rotated (GPT-NeoX's
// rotary_pct), Transformer Engine's kernel copies the rest.
void add_rotary(LayerCost& cost, const TransformerWriter& to, const Sizes& z, double width) {
  constexpr double kFused = 8;  // bytes per 16-bit element, both passes together
  const double given = to.pass.kernels.rotary_bytes;
  add_both_ways(cost, 2 * z.bytes(width) * (given > 0 ? given / kFused : 1));
}

// A forward pass is given a third of the time, as it has two of the six products.
void add_sinks(LayerCost& cost, const TransformerWriter& to, const Sizes& z) {
  if (!to.t.attention_sinks) return;
  const double scores = z.samples * z.heads * z.sequence * seen_in_the_mean(z, z.keys_length, to.t.causal);
  const double bytes = to.pass.kernels.sink_bytes * scores;
  if (bytes == 0) return;
  cost.forward.push_back(moves(bytes / 3));
  cost.backward_input.push_back(moves(2 * bytes / 3));
}

struct QueriesKeysValues {
  int queries = 0, keys = 0;  // numbers of the layer's values
};

// Uses a single product, unless queries are split further than keys and values.
QueriesKeysValues add_queries_keys_values(TransformerWriter& to, int input, bool rotary) {
  using enum Dim;
  const Transformer& t = to.t;
  const Sizes whole = whole_sizes(to);
  const Value q = to.value({batch, sequence, kv_heads, queries, head}, whole.queries);
  Value kv = to.value({batch, sequence, kv_heads, head}, whole.keys + whole.values);
  if (to.pass.kernels.expanded_keys)  // all that is sent of them
    kv.element *= (whole.queries + whole.context) / (whole.keys + whole.values);
  const bool together = to.pass.splits.of(SegmentKind::query, queries) == 1;
  QueriesKeysValues made;
  const auto add_products = [&](SegmentKind kind, const std::vector<Value>& outputs, double width) {
    const Sizes z = to.sizes(kind);
    LayerCost& cost = to.layer.add(kind, {input}, outputs);
    add_linear(cost, z.tokens, width, z.hidden, z.element);
    if (t.qkv_biases) add_bias(cost, z, width, false);
  };
  const Sizes z = to.sizes(SegmentKind::query), apart = to.sizes(SegmentKind::key_value);
  if (together) {
    add_products(SegmentKind::query, {q, kv}, z.queries + z.keys + z.values);
    made = {to.layer.last() - 1, to.layer.last()};
  } else {
    add_products(SegmentKind::query, {q}, z.queries);
    made.queries = to.layer.last();
    add_products(SegmentKind::key_value, {kv}, apart.keys + apart.values);
    made.keys = to.layer.last();
  }
  Layer& layer = to.layer.layer();
  std::size_t of_queries = layer.segments.size() - (together ? 1 : 2), of_keys = layer.segments.size() - 1;
  if (t.qk_norm) {
    // Over all heads, the sums of tensor-parallel ranks would be added up, 4 bytes a token; that is left out.
    const bool over_all = t.qk_norm_gains == QkNormGains::all;
    const Sizes n = to.sizes(SegmentKind::query_norm), k = to.sizes(SegmentKind::key_norm);
    const auto norm = [&](LayerCost& cost, const Sizes& s, double width) {
      const double gains = t.qk_norm_gains == QkNormGains::none   ? 0
                           : t.qk_norm_gains == QkNormGains::head ? s.head
                                                                  : width;
      add_norm(cost, s, width, over_all ? width : s.head, gains);
      cost.saved_bytes += s.bytes(width);
    };
    if (together) {
      LayerCost& cost = to.layer.add(SegmentKind::query_norm, {made.queries, made.keys}, {q, kv});
      norm(cost, n, n.queries);
      norm(cost, n, n.keys);
      made = {to.layer.last() - 1, to.layer.last()};
    } else {
      norm(to.layer.add(SegmentKind::query_norm, {made.queries}, {q}), n, n.queries);
      made.queries = to.layer.last();
      norm(to.layer.add(SegmentKind::key_norm, {made.keys}, {kv}), k, k.keys);
      made.keys = to.layer.last();
    }
    of_queries = layer.segments.size() - (together ? 1 : 2);
    of_keys = layer.segments.size() - 1;
  }
  if (rotary) {
    const Sizes r = to.sizes(layer.segments[of_queries].kind), k = to.sizes(layer.segments[of_keys].kind);
    add_rotary(layer.segments[of_queries].cost, to, r, together ? r.queries + r.keys : r.queries);
    if (!together) add_rotary(layer.segments[of_keys].cost, to, k, k.keys);
  }
  return made;
}

// Megatron-LM's kernels (fused_mla_yarn_rope_apply) rotate the rotary part of the queries in place. A second
// kernel reads the expanded keys and values and the shared rotary key, and writes the keys of all heads and
// the values.
QueriesKeysValues add_latent_queries_keys_values(TransformerWriter& to, int input) {
  using enum Dim;
  const Transformer& t = to.t;
  const Sizes whole = whole_sizes(to);
  const double rope = t.rope_head_dim;
  const Value q = to.value({batch, sequence, kv_heads, queries, head}, whole.queries);
  const Value kv = to.value({batch, sequence, kv_heads, head}, whole.keys + whole.values);
  QueriesKeysValues made;
  const auto compress = [&](double rank, double beside) {
    const Sizes z = to.sizes(SegmentKind::latent);
    LayerCost& cost =
        to.layer.add(SegmentKind::latent, {input}, {to.value({batch, sequence, latent}, rank + beside)});
    add_linear(cost, z.tokens, rank + beside, z.hidden, z.element);
    add_norm(cost, z, rank, rank, rank);
    cost.saved_bytes = 2 * z.bytes(rank);  // inputs of the norm and of the next product
    return to.layer.last();
  };
  const Sizes z = to.sizes(SegmentKind::latent_up);
  if (t.q_lora_rank > 0) {
    const int compressed = compress(t.q_lora_rank, 0);
    LayerCost& cost = to.layer.add(SegmentKind::latent_up, {compressed}, {q});
    add_linear(cost, z.tokens, z.queries, t.q_lora_rank, z.element);
  } else {
    const Sizes own = to.sizes(SegmentKind::query);
    LayerCost& cost = to.layer.add(SegmentKind::query, {input}, {q});
    add_linear(cost, own.tokens, own.queries, own.hidden, own.element);
  }
  made.queries = to.layer.last();
  const int compressed = compress(t.kv_lora_rank, rope);
  const double plain_keys = z.heads * (z.head - rope);
  LayerCost& cost = to.layer.add(SegmentKind::latent_up, {compressed}, {kv});
  made.keys = to.layer.last();
  add_linear(cost, z.tokens, plain_keys + z.values, t.kv_lora_rank, z.element);
  add_both_ways(cost, 2 * z.bytes(z.heads * rope));
  add_both_ways(cost, z.bytes(plain_keys + z.values + rope + z.queries + z.values));
  // Adds up the input's gradients from both products.
  cost.backward_input.push_back(moves(3 * to.sizes(SegmentKind::norm).activation, 2, 1));
  return made;
}

// Kernels of softmax(Q K^T) V, which selective recomputation repeats.
std::vector<Kernel> attention_forward(const Transformer& t, const Sizes& z, double seen) {
  const double s = z.sequence, scores = score_count(z, seen);
  std::vector<Kernel> kernels;
  // Keys and values that heads share are repeated for each of them.
  if (heads_share_keys(z))
    kernels.push_back(moves_between(z.key_bytes(z.keys + z.values + z.queries + z.context), z.keys + z.values,
                                    z.queries + z.context));
  kernels.push_back(attention_product(z, s, seen, z.head, seen, z.head));
  // Scale, soft-capping, mask and softmax in one kernel.
  kernels.push_back(softmax_forward({z.element * scores, seen, z.element}));
  if (has_dropout(t)) kernels.push_back(moves((2 * z.element + kMask) * scores, 1, 1 + kMask / z.element));
  kernels.push_back(attention_product(z, s, z.value_head, seen, seen, z.value_head));
  kernels.push_back(moves(2 * z.bytes(z.context)));  // merge the heads
  return kernels;
}

// Bytes that attention saves for its backward pass, without its result: the scores of each query with
// `kept_keys` keys, and of keys and values only the device's own.
double saved_by_attention(const Transformer& t, const PassShape& pass, const Sizes& z, double kept_keys) {
  double bytes = z.bytes(z.queries);  // Q
  if (pass.kernels.packed_queries && !heads_share_keys(z)) bytes += z.bytes(z.keys + z.values);
  if (pass.attention != AttentionKernels::unfused)
    return bytes + z.bytes(pass.kernels.expanded_keys ? z.queries + z.context : z.keys + z.values) +
           logarithms_of_sums(z);
  if (pass.recompute == Recompute::selective) return bytes + z.bytes(z.keys + z.values);
  // K and V as the products read them; the softmax, its dropout mask and the result of dropout; the scores;
  // the shares of the sinks
  bytes += z.bytes(z.queries + z.context);
  const double scores = score_count(z, kept_keys);
  bytes += (has_dropout(t) ? 2 * z.element + kMask : z.element) * scores;
  if (t.attention_softcap) bytes += z.element * scores;
  if (t.attention_sinks) bytes += z.bytes(z.heads);
  return bytes;
}

// Bytes that the backward pass of attention holds beside what is saved: the gradients of its result, queries,
// keys and values, and either a sum for the queries in fp32 (FlashAttention-2) or the gradients of the
// softmax and of the scores.
double working_of_attention(const PassShape& pass, const Sizes& z, double kept_keys) {
  const double gradients = z.bytes(z.context + z.queries + z.keys + z.values);
  constexpr double kFp32 = 4;
  return gradients + (pass.attention == AttentionKernels::unfused ? 2 * z.element * score_count(z, kept_keys)
                                                                  : kFp32 * z.tokens * z.queries);
}

// Returns the steps of ring attention. With a zigzag split, a rank computes all of the first part and half of
// every other one: all its queries attend to the first half of the keys from ranks before it in the ring, and
// the second half of its queries attend to all keys from the ranks after it (Transformer Engine's
// AttnFuncWithCPAndKVP2P). The result of each step is merged with those of the steps before.
std::vector<RingStep> ring_steps(const Transformer& t, const PassShape& pass, const Sizes& z, bool local) {
  const AttentionRing& ring = pass.ring;
  const double keys = z.keys_length / ring.ranks, reach = local ? t.window : z.keys_length;
  std::vector<RingStep> steps;
  for (int i = 0; i < ring.ranks; ++i) {
    RingStep& step = steps.emplace_back();
    const bool causal = t.causal && i > 0;
    if (causal && ring.zigzag) step.masked = 2;
    if (causal && !ring.zigzag) step.first_rank = i;
    Sizes part = z;
    part.keys_length = keys / step.masked;
    step.seen = std::clamp(reach - i * keys, 0.0, part.keys_length);
    if (step.seen == 0) continue;
    if (pass.attention == AttentionKernels::unfused) {
      step.forward = attention_forward(t, part, step.seen);
      step.backward = attention_backward(t, part, step.seen);
    } else {  // a causal mask hides half of the own keys and none of the others
      step.forward = fused_forward(pass, part, step.seen, t.causal && i == 0);
      step.backward = fused_backward(t, pass, part, step.seen, t.causal && i == 0);
    }
    if (i == 0) continue;
    step.forward.push_back(moves(3 * z.bytes(z.context), 2, 1));
    step.backward.push_back(moves(3 * (z.bytes(z.queries) + part.key_bytes(z.keys + z.values)), 2, 1));
  }
  return steps;
}

// Average over the ranks of the ring.
LayerCost mean_of(const std::vector<RingStep>& steps) {
  LayerCost mean;
  const auto ranks = static_cast<double>(steps.size());
  for (const RingStep& step : steps) {
    const double share = (ranks - step.first_rank) / ranks;
    const auto add = [&](std::vector<Kernel>& to, std::vector<Kernel> kernels) {
      for (Kernel& kernel : kernels) kernel.count *= share;
      append(to, kernels);
    };
    add(mean.forward, step.forward);
    add(mean.backward_input, step.backward);
  }
  return mean;
}

// Disentangled attention: He et al., "DeBERTa" (arXiv 2006.03654), section 3.1 and equations 2 to 4. The
// table of relative positions is projected to keys and queries; their products with the queries and keys have
// an element for each token and row of the table, of which those of each pair of tokens are gathered and
// added to the scores. DeBERTa V3 projects with the weights of the queries and keys, V1 with its own
// (relative_weights). No fused kernel does this.
void add_relative_positions(LayerCost& cost, const TransformerWriter& to, const Sizes& z) {
  const double rows = to.t.relative_positions, scores = score_count(z, z.keys_length);
  const double heads = z.samples * z.heads;
  LayerCost projection;
  for (int i = 0; i < 2; ++i) {
    add_linear(projection, rows, z.queries, z.hidden, z.element);
    cost.forward.push_back(product(Kind::attention, z.sequence, rows, z.head, z.element, heads));
    cost.forward.push_back(moves(3 * z.element * scores, 2, 1));
    cost.backward_input.push_back(moves(3 * z.element * scores, 2, 1));
    cost.backward_input.push_back(product(Kind::attention, z.sequence, z.head, rows, z.element, heads));
    cost.backward_input.push_back(product(Kind::attention, rows, z.head, z.sequence, z.element, heads));
  }
  append(cost.forward, projection.forward);
  append(cost.backward_input, projection.backward_input);
  append(cost.backward_weight, projection.backward_weight);
  if (to.t.relative_weights) cost.parameters += projection.parameters + z.queries;  // one has a bias
  cost.saved_bytes += 2 * z.element * rows * z.queries;
}

}  // namespace

int add_attention(TransformerWriter& to, int input, bool local, bool rotary) {
  using enum Dim;
  const Transformer& t = to.t;
  const QueriesKeysValues made = t.kv_lora_rank > 0 ? add_latent_queries_keys_values(to, input)
                                                    : add_queries_keys_values(to, input, rotary);
  Sizes z = to.sizes(SegmentKind::attention);
  double kept_keys = seen_keys(t, z, local);
  const bool fused = to.pass.attention != AttentionKernels::unfused;
  LayerCost* cost =
      &to.layer.add(SegmentKind::attention, {made.queries, made.keys},
                    {to.value({batch, sequence, kv_heads, queries, head}, whole_sizes(to).context)});
  if (to.pass.ring.ranks > 1) {
    std::vector<RingStep> steps = ring_steps(t, to.pass, z, local);
    *cost = mean_of(steps);
    kept_keys = 0;
    for (const RingStep& step : steps) kept_keys += step.seen;
    to.layer.layer().segments.back().steps = std::move(steps);
  } else if (fused) {
    cost->forward = fused_forward(to.pass, z, kept_keys, t.causal);
    cost->backward_input = fused_backward(t, to.pass, z, kept_keys, t.causal);
    if (to.pass.kernels.expanded_keys && heads_share_keys(z))
      cost->forward.insert(cost->forward.begin(),
                           moves_between(z.bytes(z.keys + z.values + z.queries + z.context),
                                         z.keys + z.values, z.queries + z.context));
  } else {
    cost->forward = attention_forward(t, z, kept_keys);
    cost->backward_input = attention_backward(t, z, kept_keys);
  }
  // Fused attention recomputes its scores in any case.
  if (to.pass.recompute == Recompute::selective && !fused) cost->recompute = cost->forward;
  cost->saved_bytes = saved_by_attention(t, to.pass, z, kept_keys);
  cost->working_bytes = working_of_attention(to.pass, z, kept_keys);
  if (t.relative_positions > 0) add_relative_positions(*cost, to, z);
  if (fused) add_sinks(*cost, to, z);
  if (t.attention_sinks) {  // gradients: sums over the tokens of each token's share of the sinks
    cost->parameters += z.heads;
    cost->backward_weight.push_back(column_sums({z.bytes(z.heads), z.heads, z.element}));
  }
  z = to.sizes(SegmentKind::projection);
  cost = &to.layer.add(SegmentKind::projection, {to.layer.last()}, {to.tokens()});
  add_linear(*cost, z.tokens, z.hidden, z.context, z.element);
  cost->saved_bytes = z.bytes(z.context);
  return to.layer.last();
}

}  // namespace rehearse
