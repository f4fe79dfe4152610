// Writes the kernels of transformers as Megatron-LM runs them: matrix products by cuBLAS, unfused attention
// (attention.cpp), and the fused element-wise kernels bias+activation, bias+gated activation,
// bias+dropout+add and rotary positions. Gemma's scaling of the embedding is part of the look-up.
//
// Sources. FLOPs: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM", SC'21, appendix and eq. 3. Saved activations: Korthikanti et al., "Reducing Activation
// Recomputation in Large Transformer Models", 2022, section 4: s b h (34 + 5 a s / h) bytes per layer at 16
// bits, s b h (10 + 24 / t + 5 a s / (h t)) with tensor parallelism of degree t, all of it divided by t with
// sequence parallelism. Memory traffic: each kernel reads its operands and writes its results once. At 1.6
// TB/s (0.8 of an A100's 2.0 TB/s) the forward kernels below take 0.75 ms (softmax, dropout) and 0.82 ms (the
// others) in the 22B layer of Korthikanti's table 4 (micro-batch 4, tensor parallel 8), whose forward pass
// was measured as 7.7 ms.
#include <algorithm>
#include <array>
#include <optional>

#include "models/kept_operators.hpp"
#include "models/transformer_parts.hpp"

namespace rehearse {
namespace {

// Bias, dropout and residual in one kernel: reads x and the residual, writes the sum and the mask. The
// backward pass reads dy and the mask and writes dx (without dropout dx is dy), and then adds the two
// gradients that meet where the residual branches off. The bias is part of this segment because the product's
// result can be a partial sum.
int add_residual(TransformerWriter& to, int branch, int trunk) {
  const Transformer& t = to.t;
  const Sizes z = to.sizes(SegmentKind::residual);
  LayerCost& cost = to.layer.add(SegmentKind::residual, {branch, trunk}, {to.tokens()});
  const double mask = t.dropout ? kMask * z.tokens * z.hidden : 0, part = t.dropout ? kMask / z.element : 0;
  cost.forward.push_back(moves(3 * z.activation + mask, 2, 1 + part));
  if (t.dropout) cost.backward_input.push_back(moves(2 * z.activation + mask, 1 + part, 1));
  cost.backward_input.push_back(moves(3 * z.activation, 2, 1));
  cost.saved_bytes = mask;
  return to.layer.last();
}

// Adds kernels that scale and cast the operands of products. The input and the output gradient are each read
// to find the largest magnitude and again to be cast. The products for input gradients read the weights, and
// those for weight gradients read both operands, in the other memory order: each of these is transposed in 8
// bits, with one read and one write.
void add_casts(Layer& layer, double cast_bytes) {
  constexpr double kTransposed = 2;
  for (Segment& segment : layer.segments) {
    LayerCost& cost = segment.cost;
    for (std::size_t i = 0; i < cost.forward.size(); ++i) {
      const Kernel made = cost.forward[i];
      if (made.kind != Kernel::Kind::gemm || made.wide) continue;
      const double inputs = made.m * made.k * made.batch, outputs = made.m * made.n * made.batch;
      cost.forward.insert(cost.forward.begin() + static_cast<std::ptrdiff_t>(i),
                          moves(cast_bytes * inputs, 4, 1));
      cost.backward_input.push_back(moves(cast_bytes * outputs, 4, 1));
      cost.backward_input.push_back(moves(kTransposed * made.n * made.k * made.batch));
      cost.backward_weight.push_back(moves(kTransposed * (inputs + outputs)));
      break;  // a segment has at most one such product
    }
  }
}

// The properties in which layers of one model can differ.
struct LayerKind {
  bool local = false;    // uses the sliding window
  bool rotary = false;   // rotates queries and keys
  bool experts = false;  // has a mixture of experts
};

Layer transformer_layer(const Transformer& t, const PassShape& pass, const LayerKind& kind) {
  TransformerWriter to(t, pass, "layer");
  const double activation = to.sizes(SegmentKind::norm).activation;
  // Without a norm, the first product saves its input.
  const auto keep_input = [&](std::size_t segment) {
    if (!t.pre_norms) to.layer.layer().segments[segment].cost.saved_bytes += activation;
  };
  const int normalised = t.pre_norms ? add_norm(to, 0) : 0;
  int branch = add_attention(to, normalised, kind.local, kind.rotary);
  keep_input(0);
  const auto attention_bias = [&](LayerCost& cost) {
    if (t.projection_bias.value_or(t.biases)) add_bias(cost, to.sizes(SegmentKind::residual), t.hidden, true);
  };
  if (t.post_norms) branch = add_norm(to, branch);
  const int middle = add_residual(to, branch, 0);
  attention_bias(to.layer.layer().segments.back().cost);

  int second = t.parallel_residual ? 0 : middle;
  if (t.shared_norm) {
    second = normalised;
  } else if (t.pre_norms) {
    second = add_norm(to, second);
    // Parallel branches share one saved input.
    if (t.parallel_residual) to.layer.layer().segments.back().cost.saved_bytes -= activation;
  }
  const std::size_t first_of_feed_forward = to.layer.layer().segments.size();
  branch = add_feed_forward(to, second, kind.experts);
  if (!t.parallel_residual) keep_input(first_of_feed_forward);
  if (t.post_norms) branch = add_norm(to, branch);
  add_residual(to, branch, middle);
  if (t.biases && !kind.experts)
    add_bias(to.layer.layer().segments.back().cost, to.sizes(SegmentKind::residual), t.hidden, true);

  Layer& layer = to.layer.layer();
  if (t.post_norms)  // the results of these norms are added immediately, so only their inputs are saved
    for (Segment& segment : layer.segments)
      if (segment.kind == SegmentKind::norm && segment.inputs.front() != 0 &&
          segment.inputs.front() != middle)
        segment.cost.saved_bytes -= to.sizes(SegmentKind::norm).activation;
  if (casts_operands(pass.precision) && pass.kernels.cast_bytes > 0)
    add_casts(layer, pass.kernels.cast_bytes);
  if (pass.recompute == Recompute::full) {
    layer.recomputed = true;
    for (Segment& segment : layer.segments) {
      if (!pass.kernels.autograd_checkpoints || !read_by_last_alone(layer, segment))
        segment.cost.recompute = segment.cost.forward;
      segment.cost.saved_bytes = 0;
    }
    layer.holds_gathered = pass.kernels.autograd_checkpoints;
    layer.segments.front().cost.saved_bytes = to.sizes(SegmentKind::norm).activation;
  }
  if (pass.recompute == Recompute::operators) keep_operators(to);
  return to.layer.take(to.sizes(SegmentKind::residual).activation);
}

void scale(std::vector<Kernel>& kernels, double factor) {
  for (Kernel& kernel : kernels) kernel.bytes *= factor;
}

bool contains(const std::vector<int>& layers, int layer) {
  return std::binary_search(layers.begin(), layers.end(), layer);
}

}  // namespace

TransformerWriter::TransformerWriter(const Transformer& shape, const PassShape& of, std::string name,
                                     bool gradient)
    : t(shape),
      pass(of),
      layer(std::move(name),
            gradient ? tokens()
                     : value({Dim::batch, Dim::sequence},
                             t.patch_size > 0 ? t.image_channels * t.patch_size * t.patch_size : 1)) {
  if (!gradient) layer.layer().values.front().has_gradient = false;
}

Sizes TransformerWriter::sizes(SegmentKind kind) const {
  using enum Dim;
  const auto split = [&](Dim dim) { return pass.splits.of(kind, dim); };
  const double kv_split = split(kv_heads), head_split = kv_split * split(queries);
  Sizes z{};
  z.element = element_bytes(pass.precision);
  z.samples = pass.micro_batch / split(batch);
  const double whole = pass.sequence_length > 0 ? pass.sequence_length : t.sequence_length;
  z.sequence = whole / split(sequence);
  z.keys_length = whole / split(keys);
  z.tokens = z.samples * z.sequence;
  z.hidden = t.hidden;
  z.inner = (t.feed_forward > 0 ? t.feed_forward : 4 * t.hidden) / split(inner);
  z.heads = t.heads / head_split;
  z.experts = t.experts / split(experts);
  z.vocabulary = share_of(t.vocabulary, split(vocabulary));
  z.head = t.head_dim > 0 ? t.head_dim : t.hidden / t.heads;
  z.value_head = t.value_head_dim > 0 ? t.value_head_dim : z.head;
  const double kv = (t.kv_heads > 0 ? t.kv_heads : t.heads) / kv_split;
  z.queries = z.heads * z.head;
  z.keys = kv * z.head;
  z.values = kv * z.value_head;
  z.context = z.heads * z.value_head;
  z.activation = z.bytes(z.hidden);
  return z;
}

double TransformerWriter::whole_context() const {
  const double head = t.head_dim > 0 ? t.head_dim : t.hidden / t.heads;
  return t.heads * (t.value_head_dim > 0 ? t.value_head_dim : head);
}

Value TransformerWriter::value(Dims dims, double width) const {
  const double sequence = pass.sequence_length > 0 ? pass.sequence_length : t.sequence_length;
  return {dims, pass.micro_batch * sequence * width, element_bytes(pass.precision)};
}

void add_norm(LayerCost& layer, const Sizes& z, double width, double row, double parameters) {
  const RowArrays arrays{z.bytes(width), row, z.element};
  layer.parameters += parameters;
  layer.forward.push_back(norm_forward(arrays));
  layer.backward_input.push_back(norm_backward(arrays));
  if (parameters > 0) layer.backward_weight.push_back(norm_parameters(arrays));
}

// Saves its input and its output, which the next product reads.
int add_norm(TransformerWriter& to, int input) {
  const Transformer& t = to.t;
  const Sizes z = to.sizes(SegmentKind::norm);
  LayerCost& cost = to.layer.add(SegmentKind::norm, {input}, {to.tokens()});
  const double gains = t.norm_gains ? z.hidden : 0, offsets = t.norm_biases.value_or(t.biases) ? gains : 0;
  add_norm(cost, z, z.hidden, z.hidden, gains + offsets);
  if (to.pass.kernels.norm_bytes > 0) {
    constexpr double kFusedArrays = 7;  // arrays read and written by the three kernels of add_norm
    const double factor = to.pass.kernels.norm_bytes / (kFusedArrays * 2);
    for (auto* pass : {&cost.forward, &cost.backward_input, &cost.backward_weight}) scale(*pass, factor);
  }
  cost.saved_bytes = 2 * z.activation;
  if (const double given = to.pass.kernels.norm_saved_bytes; given > 0)
    cost.saved_bytes *= given / 4;  // 4 for two arrays in 16 bits
  return to.layer.last();
}

void add_bias(LayerCost& layer, const Sizes& z, double width, bool fused) {
  layer.parameters += width;
  if (!fused) layer.forward.push_back(moves(2 * z.bytes(width)));
  layer.backward_weight.push_back(column_sums({z.bytes(width), width, z.element}));
}

void add_gelu(LayerCost& layer, double bytes) {
  layer.forward.push_back(moves(2 * bytes));
  layer.forward.back().form = MemoryForm::activation_forward;
  layer.backward_input.push_back(moves(3 * bytes, 2, 1));
  layer.backward_input.back().form = MemoryForm::activation_backward;
}

std::vector<Layer> transformer_layers(const Transformer& t, const PassShape& given) {
  PassShape pass = given;
  if (t.relative_positions > 0) pass.attention = AttentionKernels::unfused;
  std::vector<Layer> layers;
  layers.reserve(static_cast<std::size_t>(t.layers) + 2);
  layers.push_back(embedding_layer(t, pass));
  std::array<std::optional<Layer>, 8> kinds;  // each kind is written only once
  for (int i = 0; i < t.layers; ++i) {
    const LayerKind kind{t.window > 0 && !contains(t.full_attention_layers, i),
                         t.rotary && !contains(t.no_rotary_layers, i),
                         t.experts > 0 && !contains(t.dense_layers, i)};
    std::optional<Layer>& layer =
        kinds[(kind.local ? 1U : 0U) + (kind.rotary ? 2U : 0U) + (kind.experts ? 4U : 0U)];
    if (!layer) layer = transformer_layer(t, pass, kind);
    layers.push_back(*layer);
    layers.back().name = "layer" + std::to_string(i);
  }
  layers.push_back(head_layer(t, pass));
  return layers;
}

}  // namespace rehearse
