// Writes the feed-forward of a transformer layer: two products, or a mixture of experts.
#include <algorithm>

#include "models/transformer_parts.hpp"

namespace rehearse {
namespace {

using Kind = Kernel::Kind;

// SiLU (or GELU) of one half of the first product times its other half. The backward pass reads dy and both
// halves and writes the gradients of both.
void add_swiglu(LayerCost& layer, double bytes, double given) {
  constexpr double kFused = 16;  // bytes per 16-bit element, both passes together
  const double factor = given > 0 ? given / kFused : 1;
  layer.forward.push_back(moves(3 * bytes * factor, 2, 1));
  layer.forward.back().form = MemoryForm::activation_forward;
  layer.backward_input.push_back(moves(5 * bytes * factor, 3, 2));
  layer.backward_input.back().form = MemoryForm::activation_backward;
}

// The rows that a feed-forward processes, and the sets of weights they are distributed over.
struct Spread {
  double rows = 0;
  double sets = 1;  // existing sets
  double used = 1;  // sets with rows, all with equally many: one grouped product computes them
};

void add_spread_linear(LayerCost& layer, const Sizes& z, const Spread& s, double out, double in) {
  layer.parameters += s.sets * in * out;
  const double rows = s.rows / s.used;
  const auto grouped = [&](double m, double n, double k) {
    Kernel kernel = product(Kind::gemm, m, n, k, z.element, s.used);
    if (s.sets > 1) kernel.launches = s.used;
    return kernel;
  };
  layer.forward.push_back(grouped(rows, out, in));
  layer.backward_input.push_back(grouped(rows, in, out));
  layer.backward_weight.push_back(grouped(out, in, rows));
}

// The next kernel adds the bias; its gradient is a sum over the rows.
void add_spread_bias(LayerCost& layer, const Sizes& z, const Spread& s, double width) {
  layer.parameters += s.sets * width;
  layer.backward_weight.push_back(column_sums({z.element * s.rows * width, width, z.element}));
}

// Writes the product to the inner width and the activation function, unless the product's kernel applies it
// (`applied`). Saves the function's inputs (two for SwiGLU); ReLU needs only its result, which is the next
// product's input.
void write_up(LayerCost& cost, const TransformerWriter& to, const Sizes& z, const Spread& s, double inner,
              bool applied = false) {
  const Transformer& t = to.t;
  const double out = t.gated ? 2 * inner : inner, bytes = z.element * s.rows * inner;
  add_spread_linear(cost, z, s, out, z.hidden);
  if (t.biases) add_spread_bias(cost, z, s, out);
  if (applied) {
    // No traffic in addition to the product's.
  } else if (t.gated)
    add_swiglu(cost, bytes, to.pass.kernels.gate_bytes);
  else
    add_gelu(cost, bytes);
  cost.saved_bytes = (t.gated ? 2 : t.relu ? 0 : 1) * bytes;
  // The function's input, of which a gated one has two, beside what the next product saves of its result.
  constexpr double kResult = 2;
  if (const double given = to.pass.kernels.gate_saved_bytes; t.gated && given > 0)
    cost.saved_bytes = (given - kResult) / kResult * bytes;
  cost.working_bytes = (t.gated ? 3 : 2) * bytes;  // gradients of its result and of its inputs
}

// Writes the product back to the hidden width, which saves its input.
void write_down(LayerCost& cost, const Sizes& z, const Spread& s, double inner) {
  add_spread_linear(cost, z, s, z.hidden, inner);
  cost.saved_bytes = z.element * s.rows * inner;
}

// `width`: inner width on all devices together. The bias of the second product is part of the residual
// segment.
int add_dense(TransformerWriter& to, int input, double width) {
  using enum Dim;
  const auto inner_of = [&](SegmentKind kind) { return width / to.pass.splits.of(kind, inner); };
  const Sizes up = to.sizes(SegmentKind::up), down = to.sizes(SegmentKind::down);
  LayerCost* cost = &to.layer.add(SegmentKind::up, {input}, {to.value({batch, sequence, inner}, width)});
  write_up(*cost, to, up, {up.tokens, 1, 1}, inner_of(SegmentKind::up));
  cost = &to.layer.add(SegmentKind::down, {to.layer.last()}, {to.tokens()});
  write_down(*cost, down, {down.tokens, 1, 1}, inner_of(SegmentKind::down));
  return to.layer.last();
}

// Adds casts to 8 bits or fewer of the rows that the experts' products read and of the gradients of their
// results, with `input` and `output` elements per row.
void add_routed_casts(LayerCost& cost, const TransformerWriter& to, double rows, double input,
                      double output) {
  const double bytes = casts_operands(to.pass.precision) ? to.pass.kernels.routed_cast_bytes : 0;
  if (bytes == 0) return;
  const auto cast = [&](std::vector<Kernel>& kernels, double width) {
    if (width > 0) kernels.insert(kernels.begin(), moves(bytes * rows * width));
  };
  cast(cost.forward, input);
  cast(cost.backward_input, output);
}

// Adds copies to a stash and back of what one of the experts' products saves: per row, `input` elements of
// its operand and `gated` elements of the activation function's input. Operands are saved as cast.
void add_stash(LayerCost& cost, const TransformerWriter& to, double rows, double input, double gated) {
  if (!to.pass.kernels.stashed_experts) return;
  const double element = element_bytes(to.pass.precision);
  const double operand = casts_operands(to.pass.precision) ? 1 : element;
  const Kernel copy = moves(2 * rows * (operand * input + element * gated));
  cost.forward.push_back(copy);
  cost.backward_input.push_back(copy);
}

// Adds the kernels of each expert that multiply the bias of its second product by the rows' probabilities, in
// fp32, and add it. A forward pass runs two for each expert, a backward pass five (NVIDIA/Megatron-LM
// megatron/core/transformer/moe/experts.py, TEGroupedMLP._apply_bias, and the gradients of its operations).
void add_weighted_bias(LayerCost& cost, const TransformerWriter& to, const Spread& s, double width) {
  constexpr double kForward = 2, kBackward = 5;
  constexpr double kForwardShare = 28.0 / 68;  // of the bytes, see megatron-bridge-2025-11
  const double bytes = to.pass.kernels.expert_bias_bytes * s.rows * width;
  if (bytes == 0 || s.used == 0) return;
  const auto add = [&](std::vector<Kernel>& kernels, double share, double for_each) {
    kernels.push_back(moves(share * bytes / (for_each * s.used)));
    kernels.back().count = for_each * s.used;
  };
  add(cost.forward, kForwardShare, kForward);
  add(cost.backward_input, 1 - kForwardShare, kBackward);
}

// Adds further copies of all routed rows, and of their gradients, on their way to the experts or back.
void add_routed_copies(LayerCost& cost, double copies, double row_bytes) {
  for (; copies > 0; --copies) {
    cost.forward.push_back(moves(2 * row_bytes));
    cost.backward_input.push_back(moves(2 * row_bytes));
  }
}

void mark_routed(Layer& layer) {
  using enum SegmentKind;
  for (Segment& segment : layer.segments) {
    if (segment.kind != dispatch && segment.kind != expert_up && segment.kind != expert_down &&
        segment.kind != combine)
      continue;
    for (auto* kernels : {&segment.cost.forward, &segment.cost.backward_input, &segment.cost.backward_weight})
      for (Kernel& kernel : *kernels) kernel.routed = true;
  }
}

// Lepikhin et al., "GShard", 2020, and Jiang et al., "Mixtral of Experts", 2024, section 2.1: a linear
// router, a softmax over the chosen experts, and their weighted sum. Rows are copied in the order of their
// experts, go through grouped products, and are copied back (Gale et al., "MegaBlocks", 2022). Assumes that
// the router distributes tokens evenly, which is the aim of its auxiliary loss, and drops none.
int add_experts(TransformerWriter& to, int input) {
  using enum Dim;
  constexpr double kProbability = 4;  // fp32
  const Transformer& t = to.t;
  const double chosen = t.experts_per_token * to.pass.expert_capacity;

  Sizes z = to.sizes(SegmentKind::router);
  LayerCost* cost =
      &to.layer.add(SegmentKind::router, {input}, {to.value({batch, sequence, experts}, t.experts)});
  const int gates = to.layer.last();
  add_linear(*cost, z.tokens, t.experts, z.hidden, z.element);
  if (t.router_bias) add_bias(*cost, z, t.experts, true);
  const double logits = kProbability * z.tokens * t.experts;
  const RowArrays probabilities{logits, t.experts, kProbability};
  cost->forward.push_back(softmax_forward(probabilities));  // softmax and choice of the experts
  cost->backward_input.push_back(softmax_backward(probabilities));
  cost->saved_bytes = logits;

  // To the experts: each row is read and written; the backward pass sums the gradients of the copies.
  z = to.sizes(SegmentKind::dispatch);
  const auto rows = [&](Dim dim, double width) { return to.value({experts, routed, dim}, chosen * width); };
  cost = &to.layer.add(SegmentKind::dispatch, {input, gates}, {rows(hidden, t.hidden)});
  cost->forward.push_back(moves(2 * chosen * z.activation));
  cost->backward_input.push_back(moves((chosen + 1) * z.activation, chosen, 1));
  add_routed_copies(*cost, to.pass.kernels.routed_copies, chosen * z.activation);
  cost->saved_bytes = chosen * z.activation;

  const auto spread = [&](SegmentKind kind) {
    z = to.sizes(kind);
    // The router distributes the rows of all tokens over all experts.
    Spread routed_rows{chosen * z.tokens * z.experts / t.experts, z.experts, 0};
    routed_rows.used = std::min(z.experts, routed_rows.rows);
    return routed_rows;
  };
  const double width = t.feed_forward > 0 ? t.feed_forward : 4 * t.hidden;
  const auto inner_of = [&](SegmentKind kind) { return width / to.pass.splits.of(kind, inner); };
  cost = &to.layer.add(SegmentKind::expert_up, {to.layer.last()}, {rows(inner, width)});
  Spread s = spread(SegmentKind::expert_up);
  const bool fused = to.pass.kernels.fused_experts;
  const double inner_width = inner_of(SegmentKind::expert_up);
  write_up(*cost, to, z, s, inner_width, fused);
  if (to.pass.kernels.weighted_activations && !t.gated) cost->saved_bytes += z.element * s.rows * inner_width;
  const double up_width = (t.gated ? 2 : 1) * inner_width;
  add_routed_casts(*cost, to, s.rows, z.hidden, fused ? 0 : up_width);
  add_stash(*cost, to, s.rows, z.hidden, up_width);
  cost = &to.layer.add(SegmentKind::expert_down, {to.layer.last()}, {rows(hidden, t.hidden)});
  s = spread(SegmentKind::expert_down);
  write_down(*cost, z, s, inner_of(SegmentKind::expert_down));
  add_routed_casts(*cost, to, s.rows, fused ? 0 : inner_of(SegmentKind::expert_down), z.hidden);
  add_stash(*cost, to, s.rows, inner_of(SegmentKind::expert_down), 0);
  if (t.biases) {
    add_spread_bias(*cost, z, s, z.hidden);
    add_weighted_bias(*cost, to, s, z.hidden);
  }

  // Back from the experts: their weighted sum. The backward pass reads each result again for the gradient of
  // its weight.
  z = to.sizes(SegmentKind::combine);
  cost = &to.layer.add(SegmentKind::combine, {to.layer.last(), gates}, {to.tokens()});
  cost->forward.push_back(moves((chosen + 1) * z.activation, chosen, 1));
  cost->backward_input.push_back(moves((2 * chosen + 1) * z.activation, chosen + 1, chosen));
  add_routed_copies(*cost, to.pass.kernels.routed_copies, chosen * z.activation);
  if (!to.pass.kernels.weighted_activations) cost->saved_bytes = chosen * z.activation;
  mark_routed(to.layer.layer());
  if (t.shared_expert == 0) return to.layer.last();

  const int combined = to.layer.last(), shared = add_dense(to, input, t.shared_expert);
  if (t.biases) {
    cost = &to.layer.layer().segments.back().cost;
    add_bias(*cost, to.sizes(SegmentKind::down), t.hidden, true);
  }
  z = to.sizes(SegmentKind::residual);
  cost = &to.layer.add(SegmentKind::residual, {combined, shared}, {to.tokens()});
  if (t.shared_expert_gate) {
    cost->parameters += z.hidden;  // the gate: a product with one column, and a sigmoid
    cost->forward.push_back(moves(4 * z.activation, 3, 1));
    cost->backward_input.push_back(moves(5 * z.activation, 3, 2));
    cost->backward_weight.push_back(column_sums({z.activation, z.hidden, z.element}));
    cost->saved_bytes = z.activation;
  } else {  // adds both results; the backward pass adds the gradients of their common input
    cost->forward.push_back(moves(3 * z.activation, 2, 1));
    cost->backward_input.push_back(moves(3 * z.activation, 2, 1));
  }
  return to.layer.last();
}

}  // namespace

int add_feed_forward(TransformerWriter& to, int input, bool experts) {
  if (experts) return add_experts(to, input);
  const Transformer& t = to.t;
  const double width = t.feed_forward > 0 ? t.feed_forward : 4 * t.hidden;
  return add_dense(to, input, t.experts > 0 ? t.dense_feed_forward : width);
}

}  // namespace rehearse
