// Implements training.recompute = "operators": torchtitan's selective activation checkpointing of operators
// (pytorch/torchtitan at 9dec370, torchtitan/parallelisms/parallelize_llama.py). It saves the results of
// fused attention, of reduce-scatters and of every second matrix product, and recomputes the rest. Products
// are counted per weight matrix in the order of the forward pass, so that W_Q, W_V and the first half of a
// gated feed-forward are saved, and W_K, W_O and the other half are not.
//
// Recomputation stops where the backward pass reads nothing further: results that only the layer's last sum
// reads are not recomputed, nor is a product whose reduced result was saved.
#include <algorithm>

#include "models/kept_operators.hpp"

namespace rehearse {
namespace {

// Shares of a segment's outputs by weight matrix.
std::vector<double> product_shares(const TransformerWriter& to, SegmentKind kind) {
  const Sizes z = to.sizes(kind);
  switch (kind) {
    case SegmentKind::query: {
      if (to.pass.splits.of(kind, Dim::queries) > 1 || to.t.kv_lora_rank > 0) return {1};
      const double all = z.queries + z.keys + z.values;
      return {z.queries / all, z.keys / all, z.values / all};
    }
    case SegmentKind::key_value:
      return {z.keys / (z.keys + z.values), z.values / (z.keys + z.values)};
    case SegmentKind::up:
    case SegmentKind::expert_up:
      if (to.t.gated) return {0.5, 0.5};
      return {1};
    default:
      return {1};
  }
}

bool reads(const Segment& segment, const Segment& maker) {
  return std::any_of(maker.outputs.begin(), maker.outputs.end(), [&](int output) {
    return std::find(segment.inputs.begin(), segment.inputs.end(), output) != segment.inputs.end();
  });
}

// Share of the outputs of the segment's products that is saved; `products` counts the layer's products so
// far.
double kept_share(const TransformerWriter& to, SegmentKind kind, int& products) {
  double kept = 0;
  for (const double share : product_shares(to, kind))
    if (products++ % 2 == 0) kept += share;
  return kept;
}

bool is_product(const Kernel& kernel) {
  return kernel.kind == Kernel::Kind::gemm;
}

}  // namespace

bool read_by_last_alone(const Layer& layer, const Segment& segment) {
  const Segment& last = layer.segments.back();
  return &segment == &last || std::none_of(layer.segments.begin(), layer.segments.end() - 1,
                                           [&](const Segment& reader) { return reads(reader, segment); });
}

void keep_operators(TransformerWriter& to) {
  Layer& layer = to.layer.layer();
  layer.holds_gathered = true;
  const Sizes rest = to.sizes(SegmentKind::residual);
  int products = 0;
  for (Segment& segment : layer.segments) {
    LayerCost& cost = segment.cost;
    cost.saved_bytes = 0;
    const bool unread = read_by_last_alone(layer, segment);
    const bool multiplies = std::any_of(cost.forward.begin(), cost.forward.end(), is_product);
    const double kept = multiplies ? kept_share(to, segment.kind, products) : 0;
    if (segment.kind == SegmentKind::projection &&
        to.sizes(SegmentKind::projection).context < to.whole_context()) {
      cost.saved_bytes = rest.activation;  // the sum over the tensor-parallel ranks
      continue;
    }
    if (unread) continue;
    for (const Kernel& kernel : cost.forward) {
      if (kernel.kind == Kernel::Kind::fused_attention) {
        const Sizes z = to.sizes(segment.kind);
        constexpr double kFp32 = 4;  // for the logarithm of each query's sum
        cost.saved_bytes = z.bytes(z.context) + kFp32 * z.tokens * z.heads;
      } else if (!is_product(kernel)) {
        cost.recompute.push_back(kernel);
      } else {
        const double element = rest.element;
        cost.saved_bytes += kept * element * kernel.m * kernel.n * kernel.batch * kernel.count;
        if (kept >= 1) continue;
        Kernel again =
            product(Kernel::Kind::gemm, kernel.m, kernel.n * (1 - kept), kernel.k, element, kernel.batch);
        again.count = kernel.count;
        cost.recompute.push_back(again);
      }
    }
  }
  layer.segments.front().cost.saved_bytes += to.sizes(SegmentKind::norm).activation;  // the layer's input
}

}  // namespace rehearse
