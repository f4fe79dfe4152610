// Implements a perceptron's exchanges with the ranks that share its layers.
// If ranks share the rows of a micro-batch (sequence parallelism), tensors are gathered into a buffer that
// all of them use in turn, and partial sums are reduced in another one. Otherwise sums replace the partial
// sums in place.
#include <fmt/format.h>

#include <algorithm>

#include "backend/training/perceptron.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

// Returns part `part` of an array of equal parts.
Array part_of(const Array& whole, const Part& part) {
  const std::size_t each = whole.elements / static_cast<std::size_t>(part.of);
  return whole.part(static_cast<std::size_t>(part.number) * each, each);
}

}  // namespace

void Perceptron::allocate_transfers() {
  const Precision precision = stored_as(options_.precision);
  long widest = 0;
  std::size_t shared = 0;
  for (const HeldLayer& layer : held_) {
    if (layer.rows != layer.input_rows) widest = std::max(widest, layer.rows * layer.inputs);
    if (layer.rows != layer.output_rows) widest = std::max(widest, layer.rows * layer.outputs);
    if (layer.shard.sums_matrix) shared += static_cast<std::size_t>(layer.inputs * layer.outputs);
    if (layer.shard.sums_bias) shared += static_cast<std::size_t>(layer.outputs);
  }
  gathered_ = OwnedArray(arithmetic_, static_cast<std::size_t>(widest), precision);
  summands_ = OwnedArray(arithmetic_, static_cast<std::size_t>(widest), precision);
  shared_gradients_ = OwnedArray(arithmetic_, shared, stored_as(options_.gradient_precision));
  if (!holds(layers() - 1) || shard_of(layers() - 1).outputs.of == 1) return;
  for (OwnedArray* rows : {&maxima_, &sums_, &label_logits_})
    *rows = OwnedArray(arithmetic_, static_cast<std::size_t>(options_.micro_batch), Precision::fp32);
}

SegmentKind Perceptron::maker_of(const ValueTransfer& transfer) const {
  const Layer& layer = model_.at(static_cast<std::size_t>(transfer.layer));
  for (const Segment& segment : layer.segments)
    if (std::find(segment.outputs.begin(), segment.outputs.end(), transfer.value) != segment.outputs.end())
      return segment.kind;
  throw RunError(fmt::format("value {} of layer {} is not computed by any of its segments", transfer.value,
                             transfer.layer));
}

// A value is reduced from its maker's partial sums and gathered for its reader; its gradient is reduced from
// the reader's partial sums and gathered for the maker.
Array Perceptron::begin_transfer(int stream, const ValueTransfer& t) {
  const SegmentKind maker = maker_of(t);
  if (maker == SegmentKind::maximum) return maxima_;
  if (maker == SegmentKind::sums) {
    const std::vector<Segment>& segments = model_.back().segments;
    const auto sums = std::find_if(segments.begin(), segments.end(),
                                   [](const Segment& segment) { return segment.kind == SegmentKind::sums; });
    return t.value == sums->outputs.front() ? sums_ : label_logits_;
  }
  if (t.kind == CollectiveKind::all_gather) {
    const Array own =
        t.of_gradient ? output_gradient_of(held(t.layer), t.microbatch) : activation(t.microbatch, t.layer);
    const Part part = shard_of(t.layer).results;
    const Array whole = gathered_->part(0, own.elements * static_cast<std::size_t>(part.of));
    arithmetic_.copy(stream, own, part_of(whole, part));
    return whole;
  }
  const HeldLayer& summed = held(t.of_gradient ? t.layer + 1 : t.layer);
  if (t.kind == CollectiveKind::reduce_scatter)
    return summands_->part(
        0, static_cast<std::size_t>(summed.rows * (t.of_gradient ? summed.inputs : summed.outputs)));
  if (t.kind != CollectiveKind::all_reduce)
    throw RunError(fmt::format("ranks that split layers do not exchange values by an {}",
                               kCollectiveNames[static_cast<std::size_t>(t.kind)]));
  return t.of_gradient ? input_gradient_of(summed, t.microbatch) : product_of(summed, t.microbatch);
}

void Perceptron::end_transfer(int stream, const ValueTransfer& t) {
  if (t.kind != CollectiveKind::reduce_scatter) return;
  const HeldLayer& summed = held(t.of_gradient ? t.layer + 1 : t.layer);
  const Array whole = summands_->part(
      0, static_cast<std::size_t>(summed.rows * (t.of_gradient ? summed.inputs : summed.outputs)));
  const Array own = t.of_gradient ? input_gradient_of(summed, t.microbatch)
                                  : Array(summed.output.at(static_cast<std::size_t>(t.microbatch)));
  arithmetic_.copy(stream, part_of(whole, shard_of(t.layer).results), own);
}

void Perceptron::for_each_shared(LayerRange layers,
                                 const std::function<void(const Array& gradient, const Array& packed)>& of) {
  std::size_t at = 0;
  const auto one = [&](const Array& gradient) {
    of(gradient, shared_gradients_->part(at, gradient.elements));
    at += gradient.elements;
  };
  for (int number = layers.first; number <= layers.last; ++number) {
    const HeldLayer& layer = held(number);
    const Array all = gradients({number, number});
    if (layer.shard.sums_matrix) one(matrix_of(layer, all));
    if (layer.shard.sums_bias) one(bias_of(layer, all));
  }
}

Array Perceptron::begin_sum(int stream, const SharedSum& sum) {
  std::size_t elements = 0;
  for_each_shared(sum.layers, [&](const Array& gradient, const Array& packed) {
    arithmetic_.copy(stream, gradient, packed);
    elements += packed.elements;
  });
  return shared_gradients_->part(0, elements);
}

void Perceptron::end_sum(int stream, const SharedSum& sum) {
  for_each_shared(sum.layers, [&](const Array& gradient, const Array& packed) {
    arithmetic_.copy(stream, packed, gradient);
  });
}

}  // namespace rehearse
