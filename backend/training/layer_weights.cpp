#include "backend/training/layer_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rehearse {

Precision stored_as(Precision precision) {
  return element_bytes(precision) < 4 ? precision : Precision::fp32;
}

LayerWeights::LayerWeights(Arithmetic& arithmetic, std::vector<Layer> layers,
                           const OptimizerSettings& optimizer, Precision precision,
                           Precision gradient_precision)
    : arithmetic_(&arithmetic), optimizer_(optimizer), layers_(std::move(layers)) {
  std::size_t elements = 0;
  for (Layer& layer : layers_) {
    layer.offset = elements;
    elements += layer.parameters;
  }
  const auto in_fp32 = [&] { return OwnedArray(arithmetic, elements, Precision::fp32); };
  weights_ = OwnedArray(arithmetic, elements, stored_as(precision));
  gradients_ = OwnedArray(arithmetic, elements, stored_as(gradient_precision));
  if (element_bytes(precision) < 4) master_ = in_fp32();
  if (has_momentum(optimizer.kind)) momentum_ = in_fp32();
  if (has_second_moment(optimizer.kind)) second_moment_ = in_fp32();
}

bool LayerWeights::holds(int layer) const {
  return std::any_of(layers_.begin(), layers_.end(), [&](const Layer& l) { return l.number == layer; });
}

LayerWeights::Layer& LayerWeights::at(int layer) {
  return const_cast<Layer&>(std::as_const(*this).at(layer));
}

const LayerWeights::Layer& LayerWeights::at(int layer) const {
  for (const Layer& candidate : layers_)
    if (candidate.number == layer) return candidate;
  throw std::out_of_range(fmt::format("layer {} is not held here", layer));
}

Array LayerWeights::flat(const OwnedArray& whole, LayerRange layers) const {
  const Layer& first = at(layers.first);
  std::size_t elements = 0;
  for (int layer = layers.first; layer <= layers.last; ++layer) elements += at(layer).parameters;
  return whole->part(first.offset, elements);
}

Array LayerWeights::master_weights(LayerRange layers) const {
  return flat(master_->elements > 0 ? master_ : weights_, layers);
}

void LayerWeights::cast_weights(int stream, LayerRange layers) {
  if (master_->elements > 0) arithmetic_->copy(stream, master_weights(layers), weights(layers));
}

std::vector<HeldState> LayerWeights::state() const {
  std::vector<HeldState> all;
  const auto add = [&](StateKind kind, const OwnedArray& whole) {
    for (const Layer& layer : layers_)
      if (layer.parameters > 0 && whole->elements > 0)
        all.push_back({{kind, layer.number, "", 0, layer.parameters, layer.parameters},
                       whole->part(layer.offset, layer.parameters)});
  };
  add(StateKind::weights, master_->elements > 0 ? master_ : weights_);
  add(StateKind::momentum, momentum_);
  add(StateKind::second_moment, second_moment_);
  return all;
}

void LayerWeights::restored(int stream, long steps) {
  for (Layer& layer : layers_) {
    layer.steps = steps;
    cast_weights(stream, {layer.number, layer.number});
  }
}

void LayerWeights::update(int stream, LayerRange layers) {
  const auto of = [](const OwnedArray& whole, std::size_t offset, std::size_t elements) {
    return whole->elements > 0 ? whole->part(offset, elements) : Array{};
  };
  for (int first = layers.first; first <= layers.last;) {
    const long step = at(first).steps + 1;
    int last = first;
    while (last < layers.last && at(last + 1).steps + 1 == step) ++last;
    const LayerRange together{first, last};
    const Array now = weights(together);
    const std::size_t offset = at(first).offset;
    arithmetic_->update(stream, optimizer_, step,
                        {now, master_weights(together), gradients(together),
                         of(momentum_, offset, now.elements), of(second_moment_, offset, now.elements)});
    for (int layer = first; layer <= last; ++layer) at(layer).steps = step;
    first = last + 1;
  }
}

}  // namespace rehearse
