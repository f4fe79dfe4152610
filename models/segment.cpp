#include "models/segment.hpp"

#include <algorithm>

#include "models/kernels.hpp"

namespace rehearse {

// In the letters of the literature, in the order of Dim: batch b, sequence s, keys j, hidden h, KV heads g,
// queries per KV head q, head size d, inner f, vocabulary v, experts e, routed slots c, latent r.
Dims parameter_dims(SegmentKind kind) {
  using enum Dim;
  switch (kind) {
    case SegmentKind::embedding:
    case SegmentKind::logits:
      return {vocabulary, hidden};
    case SegmentKind::position:
    case SegmentKind::norm:
    case SegmentKind::residual:
    case SegmentKind::dense:
    case SegmentKind::pooler:
      return {hidden};
    case SegmentKind::query:
    case SegmentKind::projection:
      return {hidden, kv_heads, queries, head};
    case SegmentKind::query_norm:
    case SegmentKind::key_norm:
      return {head};
    case SegmentKind::key_value:
      return {hidden, kv_heads, head};
    case SegmentKind::latent:
      return {hidden, latent};
    case SegmentKind::latent_up:
      return {latent, kv_heads, queries, head};
    case SegmentKind::attention:  // for the attention sinks
      return {kv_heads, queries};
    case SegmentKind::up:
    case SegmentKind::down:
      return {hidden, inner};
    case SegmentKind::router:
      return {hidden, experts};
    case SegmentKind::expert_up:
    case SegmentKind::expert_down:
      return {experts, hidden, inner};
    case SegmentKind::block:
      return {hidden};
    case SegmentKind::dispatch:
    case SegmentKind::combine:
    case SegmentKind::maximum:
    case SegmentKind::sums:
    case SegmentKind::loss:
      return {};
  }
  return {};
}

Dims input_dims(SegmentKind kind, int input, Dims value) {
  if (kind == SegmentKind::attention && input > 0) return value.without(Dim::sequence).with(Dim::keys);
  return value;
}

bool leaves_weights(const Segment& segment) {
  return std::any_of(segment.cost.backward_weight.begin(), segment.cost.backward_weight.end(),
                     [](const Kernel& kernel) { return kernel.kind != Kernel::Kind::memory; });
}

LayerCost merged(const Layer& layer) {
  LayerCost all;
  all.name = layer.name;
  all.output_bytes = layer.output_bytes;
  for (const Segment& segment : layer.segments) {
    append(all.forward, segment.cost.forward);
    append(all.recompute, segment.cost.recompute);
    append(all.backward_input, segment.cost.backward_input);
    append(all.backward_weight, segment.cost.backward_weight);
    all.parameters += segment.cost.parameters;
    all.saved_bytes += segment.cost.saved_bytes;
    all.working_bytes = std::max(all.working_bytes, segment.cost.working_bytes);
    all.logits += segment.cost.logits;
    all.loss_saved_bytes += segment.cost.loss_saved_bytes;
  }
  return all;
}

std::vector<LayerCost> layer_costs(const Model& model, const PassShape& pass) {
  std::vector<LayerCost> costs;
  for (const Layer& layer : model_layers(model, pass)) costs.push_back(merged(layer));
  return costs;
}

}  // namespace rehearse
