#include "backend/training/perceptron.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "models/kernels.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

std::vector<long> whole_widths(const MultiLayerPerceptron& shape) {
  std::vector<long> widths;
  for (const double width : shape.widths) {
    widths.push_back(std::lround(width));
    if (widths.back() < 1 || static_cast<double>(widths.back()) != width)
      throw RunError(fmt::format("a perceptron of width {}; allowed: integers of 1 or more", width));
  }
  if (widths.size() < 2) throw RunError("a perceptron needs an input and an output width");
  return widths;
}

void check(const PerceptronOptions& options, int layers) {
  int next = 0;
  for (const LayerRange& range : options.held) {
    if (range.first < next || range.last < range.first || range.last >= layers)
      throw RunError(fmt::format("held layers {} to {}; allowed: ascending ranges within {} to {}",
                                 range.first, range.last, next, layers - 1));
    next = range.last + 1;
  }
  const auto trains = [](Precision p) {
    return p == Precision::fp32 || p == Precision::tf32 || p == Precision::bf16;
  };
  if (!trains(options.precision))
    throw RunError(fmt::format("training.precision is {}; allowed in real training: fp32, tf32, bf16",
                               name_of(options.precision)));
  if (!trains(options.gradient_precision) ||
      element_bytes(options.gradient_precision) < element_bytes(options.precision))
    throw RunError(
        fmt::format("gradients in {} with weights in {}; allowed in real training: fp32, or that of "
                    "the weights",
                    name_of(options.gradient_precision), name_of(options.precision)));
  if (options.kept_steps < 1)
    throw RunError(fmt::format("data of {} steps are kept; allowed: 1 or more", options.kept_steps));
  if (options.micro_batch < 1 || options.microbatches < 1 || !(options.batch_samples >= 1))
    throw RunError(fmt::format("{} micro-batches of {} samples in a batch of {}; allowed: 1 or more of each",
                               options.microbatches, options.micro_batch, options.batch_samples));
}

std::size_t weight_elements(long inputs, long outputs) {
  return static_cast<std::size_t>(inputs) * static_cast<std::size_t>(outputs);
}

}  // namespace

std::vector<float> initial_weights(const MultiLayerPerceptron& shape, std::uint64_t seed, int layer,
                                   const LayerShard& shard) {
  const auto i = static_cast<std::size_t>(layer);
  const long inputs = std::lround(shape.widths.at(i)), outputs = std::lround(shape.widths.at(i + 1));
  std::vector<float> whole(weight_elements(inputs, outputs));
  standard_normal(seed, RandomUse::weights, i, whole.data(), static_cast<long>(whole.size()));
  const double deviation = std::sqrt(2.0 / static_cast<double>(inputs));
  const long first_row = shard.inputs.first(inputs), first_column = shard.outputs.first(outputs);
  const long rows = shard.inputs.size(inputs), columns = shard.outputs.size(outputs);
  std::vector<float> result;
  result.reserve(weight_elements(rows + 1, columns));
  for (long row = first_row; row < first_row + rows; ++row)
    for (long column = first_column; column < first_column + columns; ++column)
      result.push_back(
          static_cast<float>(deviation * whole[static_cast<std::size_t>(row * outputs + column)]));
  result.resize(weight_elements(rows + 1, columns));
  return result;
}

std::vector<float> initial_weights(const MultiLayerPerceptron& shape, std::uint64_t seed, LayerRange layers,
                                   const std::vector<LayerShard>& shards) {
  std::vector<float> result;
  for (int layer = layers.first; layer <= layers.last; ++layer) {
    const LayerShard shard = shards.empty() ? LayerShard{} : shards.at(static_cast<std::size_t>(layer));
    const std::vector<float> more = initial_weights(shape, seed, layer, shard);
    result.insert(result.end(), more.begin(), more.end());
  }
  return result;
}

Perceptron::Perceptron(Arithmetic& arithmetic, const MultiLayerPerceptron& shape, PerceptronOptions options)
    : arithmetic_(arithmetic),
      widths_(whole_widths(shape)),
      options_(std::move(options)),
      model_(perceptron_layers(shape, {})),
      data_(options_.samples ? options_.samples
                             : made_samples(options_.seed, widths_.front(), widths_.back())) {
  check(options_, layers());
  for (std::size_t l = 0; l < model_.size(); ++l)
    for (std::size_t s = 0; s < model_[l].segments.size(); ++s)
      segments_.emplace_back(static_cast<int>(l), static_cast<int>(s));
  for (const LayerRange& range : options_.held)
    for (int number = range.first; number <= range.last; ++number) add_held(number);
  // Throws RunError if the device does not support the precision.
  (void)OwnedArray(arithmetic_, 0, options_.precision);
  if (held_.empty()) return;
  held_.back().ends_range = true;
  allocate_flat(shape);
  for (HeldLayer& layer : held_) allocate_activations(layer);
  allocate_batches();
  allocate_transfers();
}

LayerShard Perceptron::shard_of(int layer) const {
  return options_.shards.empty() ? LayerShard{} : options_.shards.at(static_cast<std::size_t>(layer));
}

void Perceptron::add_held(int number) {
  HeldLayer layer;
  layer.number = number;
  layer.kind = model_[static_cast<std::size_t>(number)].segments.front().kind;
  layer.shard = shard_of(number);
  layer.inputs = layer.shard.inputs.size(widths_[static_cast<std::size_t>(number)]);
  layer.outputs = layer.shard.outputs.size(widths_[static_cast<std::size_t>(number) + 1]);
  layer.rows = layer.shard.samples.size(options_.micro_batch);
  layer.input_rows = number == 0 ? layer.rows : shard_of(number - 1).results.size(options_.micro_batch);
  layer.output_rows = layer.shard.results.size(options_.micro_batch);
  layer.parameters = weight_elements(layer.inputs + 1, layer.outputs);
  // Adjacent ranges form a single one: nothing is exchanged between them.
  layer.begins_range = held_.empty() || held_.back().number + 1 < number;
  if (layer.begins_range && !held_.empty()) held_.back().ends_range = true;
  held_.push_back(std::move(layer));
}

void Perceptron::allocate_flat(const MultiLayerPerceptron& shape) {
  std::vector<LayerWeights::Layer> layers;
  for (const HeldLayer& layer : held_) layers.push_back({layer.number, layer.parameters});
  weights_ = LayerWeights(arithmetic_, std::move(layers), options_.optimizer, options_.precision,
                          options_.gradient_precision);
  for (const HeldLayer& layer : held_) {
    const LayerRange only{layer.number, layer.number};
    const std::vector<float> initial = initial_weights(shape, options_.seed, layer.number, layer.shard);
    arithmetic_.copy_to_device(0, initial.data(), master_weights(only));
    cast_weights(0, only);
  }
  arithmetic_.settle(0);
}

// Allocates activations as they are stored, in fp32 for tf32, which only affects products; see operand().
void Perceptron::allocate_activations(HeldLayer& layer) {
  const auto allocate = [&](std::vector<OwnedArray>& arrays, long elements, Precision precision, int count) {
    for (int i = 0; i < count; ++i)
      arrays.emplace_back(arithmetic_, static_cast<std::size_t>(elements), precision);
  };
  const long input = layer.input_rows * layer.inputs, output = layer.output_rows * layer.outputs;
  const int each = options_.microbatches;
  const Precision precision = stored_as(options_.precision);
  const bool loss = layer.number + 1 == layers();
  if (layer.begins_range && layer.number > 0) {
    allocate(layer.input, input, precision, each);
    allocate(layer.input_gradient, input, precision, each);
  }
  allocate(layer.output, output, loss ? Precision::fp32 : precision, each);
  allocate(layer.output_gradient, output, precision, layer.ends_range || options_.keeps_gradients ? each : 1);
  if (options_.keeps_gradients && layer.rows != layer.output_rows)
    allocate(layer.gathered_gradient, layer.rows * layer.outputs, precision, each);
}

void Perceptron::allocate_batches() {
  kept_.assign(static_cast<std::size_t>(options_.kept_steps), -1);
  const std::size_t batches = kept_.size() * static_cast<std::size_t>(options_.microbatches);
  const auto samples = static_cast<std::size_t>(options_.micro_batch);
  if (holds(0))
    inputs_ = EqualArrays(arithmetic_, batches, samples * static_cast<std::size_t>(widths_.front()),
                          stored_as(options_.precision));
  if (!holds(layers() - 1) || options_.loss_elsewhere) return;
  labels_ = EqualArrays(arithmetic_, batches, samples, Precision::fp32);
  losses_ = EqualArrays(arithmetic_, batches, samples, Precision::fp32);
}

std::size_t Perceptron::parameters(int layer) const {
  const auto i = static_cast<std::size_t>(layer);
  const LayerShard shard = shard_of(layer);
  return weight_elements(shard.inputs.size(widths_.at(i)) + 1, shard.outputs.size(widths_.at(i + 1)));
}

MatrixShape Perceptron::matrix(int layer) const {
  return {held(layer).inputs, held(layer).outputs, 0};
}

Perceptron::HeldLayer& Perceptron::held(int layer) {
  return const_cast<HeldLayer&>(std::as_const(*this).held(layer));
}

const Perceptron::HeldLayer& Perceptron::held(int layer) const {
  for (const HeldLayer& candidate : held_)
    if (candidate.number == layer) return candidate;
  throw std::out_of_range(fmt::format("layer {} is not held here", layer));
}

std::size_t Perceptron::slot(long step, int microbatch) const {
  const std::size_t number = static_cast<std::size_t>(step) % kept_.size();
  if (kept_[number] != step) throw std::out_of_range(fmt::format("step {} has no batch", step));
  return number * static_cast<std::size_t>(options_.microbatches) + static_cast<std::size_t>(microbatch);
}

void Perceptron::set_batch(int stream, long step, const std::vector<std::uint64_t>& samples) {
  const auto size = static_cast<std::size_t>(options_.micro_batch);
  const auto count = static_cast<std::size_t>(options_.microbatches);
  if (samples.size() != size * count)
    throw std::invalid_argument(fmt::format("{} samples; allowed: {}", samples.size(), size * count));
  if (held_.empty()) return;
  kept_[static_cast<std::size_t>(step) % kept_.size()] = step;
  const auto features = static_cast<std::size_t>(widths_.front());
  std::vector<float> inputs(inputs_.empty() ? 0 : size * features), labels(size);
  for (int m = 0; m < options_.microbatches; ++m) {
    const std::uint64_t* numbers = &samples[static_cast<std::size_t>(m) * size];
    if (!inputs_.empty()) {
      for (std::size_t s = 0; s < size; ++s) data_->read(numbers[s], 1, features, &inputs[s * features]);
      arithmetic_.copy_to_device(stream, inputs.data(), inputs_[slot(step, m)]);
    }
    if (!labels_.empty()) {
      for (std::size_t s = 0; s < size; ++s) data_->read(numbers[s], 0, 1, &labels[s]);
      arithmetic_.copy_to_device(stream, labels.data(), labels_[slot(step, m)]);
    }
  }
}

void Perceptron::take_batch(int stream, long step, int microbatch, const std::vector<std::uint64_t>& samples,
                            const std::vector<float>& rows) {
  kept_[static_cast<std::size_t>(step) % kept_.size()] = step;
  const auto features = static_cast<std::size_t>(widths_.front());
  std::vector<float> inputs, labels;
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const auto row = rows.begin() + static_cast<std::ptrdiff_t>(s * (1 + features));
    labels.push_back(*row);
    inputs.insert(inputs.end(), row + 1, row + 1 + static_cast<std::ptrdiff_t>(features));
  }
  if (!inputs_.empty()) arithmetic_.copy_to_device(stream, inputs.data(), inputs_[slot(step, microbatch)]);
  if (!labels_.empty()) arithmetic_.copy_to_device(stream, labels.data(), labels_[slot(step, microbatch)]);
}

Array Perceptron::input(long step, int microbatch) {
  kept_.at(static_cast<std::size_t>(step) % kept_.size()) = step;
  return inputs_[slot(step, microbatch)];
}

// Returns the input of the product. If other ranks hold some of its rows, they were gathered before.
Array Perceptron::input_of(const HeldLayer& layer, long step, int microbatch) const {
  const auto m = static_cast<std::size_t>(microbatch);
  const auto elements = static_cast<std::size_t>(layer.rows * layer.inputs);
  if (layer.number == 0)
    return inputs_[slot(step, microbatch)].part(
        static_cast<std::size_t>(layer.shard.samples.first(options_.micro_batch) * layer.inputs), elements);
  if (layer.input_rows != layer.rows) return gathered_->part(0, elements);
  return layer.begins_range ? layer.input.at(m) : held(layer.number - 1).output.at(m);
}

Array Perceptron::output_gradient_of(const HeldLayer& layer, int microbatch) const {
  return layer.output_gradient.at(layer.output_gradient.size() > 1 ? static_cast<std::size_t>(microbatch)
                                                                   : 0);
}

Array Perceptron::input_gradient_of(const HeldLayer& layer, int microbatch) const {
  if (layer.begins_range) return layer.input_gradient.at(static_cast<std::size_t>(microbatch));
  return output_gradient_of(held(layer.number - 1), microbatch);
}

// Returns the product's result: the output itself, unless each rank keeps only some rows of a sum over ranks.
Array Perceptron::product_of(const HeldLayer& layer, int microbatch) const {
  if (layer.rows == layer.output_rows) return layer.output.at(static_cast<std::size_t>(microbatch));
  return summands_->part(0, static_cast<std::size_t>(layer.rows * layer.outputs));
}

Array Perceptron::matrix_of(const HeldLayer& layer, const Array& parameters) const {
  return parameters.part(0, weight_elements(layer.inputs, layer.outputs));
}

Array Perceptron::bias_of(const HeldLayer& layer, const Array& parameters) const {
  return parameters.part(weight_elements(layer.inputs, layer.outputs),
                         static_cast<std::size_t>(layer.outputs));
}

// Gives an operand of a product the precision of training, which may be tf32.
Array Perceptron::operand(Array array) const {
  if (options_.precision == Precision::tf32) array.precision = Precision::tf32;
  return array;
}

SegmentRange Perceptron::segments_of(LayerRange layers) const {
  const auto first_of = [&](int layer) {
    return static_cast<int>(std::lower_bound(segments_.begin(), segments_.end(), std::pair(layer, 0)) -
                            segments_.begin());
  };
  return {first_of(layers.first), first_of(layers.last + 1)};
}

void Perceptron::forward(int stream, long step, int microbatch, LayerRange layers) {
  forward_segments(stream, step, microbatch, segments_of(layers));
}

void Perceptron::forward_segments(int stream, long step, int microbatch, SegmentRange segments) {
  for (int s = segments.first; s < segments.end; ++s) forward_segment(stream, step, microbatch, s);
}

void Perceptron::forward_segment(int stream, long step, int microbatch, int segment) {
  const auto [number, in_layer] = segments_.at(static_cast<std::size_t>(segment));
  const HeldLayer& layer = held(number);
  const SegmentKind kind =
      model_[static_cast<std::size_t>(number)].segments[static_cast<std::size_t>(in_layer)].kind;
  if (kind == SegmentKind::residual) return add_bias(stream, microbatch, layer);
  if (in_layer > 0) return take_losses(stream, step, microbatch, kind);
  arithmetic_.gemm(stream, {layer.rows, layer.outputs, layer.inputs}, false, false, 1,
                   operand(input_of(layer, step, microbatch)),
                   operand(matrix_of(layer, weights({number, number}))), 0, product_of(layer, microbatch));
  if (kind != SegmentKind::down) add_bias(stream, microbatch, layer);
}

void Perceptron::add_bias(int stream, int microbatch, const HeldLayer& layer) {
  const bool logits = layer.kind == SegmentKind::logits;
  arithmetic_.add_bias(stream, layer.output.at(static_cast<std::size_t>(microbatch)),
                       bias_of(layer, weights({layer.number, layer.number})), !logits);
}

// If this rank has all classes, the loss segment computes everything.
void Perceptron::take_losses(int stream, long step, int microbatch, SegmentKind segment) {
  if (options_.loss_elsewhere) return;
  const HeldLayer& layer = held(layers() - 1);
  const Array logits = layer.output.at(static_cast<std::size_t>(microbatch));
  const Array gradient = output_gradient_of(layer, microbatch);
  const std::size_t number = slot(step, microbatch);
  const auto scale = static_cast<float>(1 / options_.batch_samples);
  if (layer.shard.outputs.of == 1) {
    if (segment == SegmentKind::loss)
      arithmetic_.softmax_cross_entropy(stream, logits, labels_[number], scale, losses_[number], gradient);
    return;
  }
  const RowLabels labels{labels_[number],
                         static_cast<std::size_t>(layer.shard.outputs.first(widths_.back()))};
  if (segment == SegmentKind::maximum)
    arithmetic_.row_maxima(stream, logits, maxima_);
  else if (segment == SegmentKind::sums)
    arithmetic_.exponential_sums(stream, logits, labels, maxima_, sums_, label_logits_);
  else
    arithmetic_.split_cross_entropy(stream, logits, labels, {maxima_, sums_, label_logits_}, scale,
                                    losses_[number], gradient);
}

void Perceptron::backward(int stream, long step, int microbatch, LayerRange layers) {
  backward_segments(stream, step, microbatch, segments_of(layers));
}

// Returns which parts of a layer's backward pass a segment does. The loss segments do none: the forward pass
// has already computed the gradient of the logits.
Perceptron::BackwardStep Perceptron::backward_step(int segment) {
  const auto [number, in_layer] = segments_.at(static_cast<std::size_t>(segment));
  HeldLayer& layer = held(number);
  return {layer, (in_layer > 0) == (layer.kind == SegmentKind::down), in_layer == 0};
}

void Perceptron::backward_segments(int stream, long step, int microbatch, SegmentRange segments) {
  for (int s = segments.end - 1; s >= segments.first; --s) {
    const auto [layer, bias, product] = backward_step(s);
    if (bias) {
      backward_activation(stream, microbatch, layer);
      backward_bias(stream, step, microbatch, layer);
    }
    if (!product) continue;
    const Array gradient = product_gradient_of(layer, microbatch);
    backward_to_input(stream, microbatch, layer, gradient);
    backward_to_matrix(stream, step, microbatch, layer, gradient);
  }
}

// Copies gathered gradients, because their memory is reused before the weight part of the backward pass.
void Perceptron::backward_input_segments(int stream, int microbatch, SegmentRange segments) {
  for (int s = segments.end - 1; s >= segments.first; --s) {
    const auto [layer, bias, product] = backward_step(s);
    if (bias) backward_activation(stream, microbatch, layer);
    if (!product) continue;
    const Array gradient = product_gradient_of(layer, microbatch);
    if (!layer.gathered_gradient.empty())
      arithmetic_.copy(stream, gradient, layer.gathered_gradient.at(static_cast<std::size_t>(microbatch)));
    backward_to_input(stream, microbatch, layer, gradient);
  }
}

void Perceptron::backward_weight_segments(int stream, long step, int microbatch, SegmentRange segments) {
  for (int s = segments.end - 1; s >= segments.first; --s) {
    const auto [layer, bias, product] = backward_step(s);
    if (bias) backward_bias(stream, step, microbatch, layer);
    if (!product) continue;
    const Array gradient = layer.gathered_gradient.empty()
                               ? product_gradient_of(layer, microbatch)
                               : Array(layer.gathered_gradient.at(static_cast<std::size_t>(microbatch)));
    backward_to_matrix(stream, step, microbatch, layer, gradient);
  }
}

void Perceptron::backward_activation(int stream, int microbatch, const HeldLayer& layer) {
  if (layer.kind == SegmentKind::logits) return;
  arithmetic_.activation_backward(stream, layer.output.at(static_cast<std::size_t>(microbatch)),
                                  output_gradient_of(layer, microbatch));
}

void Perceptron::backward_bias(int stream, long step, int microbatch, HeldLayer& layer) {
  layer.accumulates = layer.gradient_step == step && options_.sum_microbatches;
  layer.gradient_step = step;
  arithmetic_.column_sums(stream, output_gradient_of(layer, microbatch),
                          bias_of(layer, gradients({layer.number, layer.number})), layer.accumulates);
}

Array Perceptron::product_gradient_of(const HeldLayer& layer, int microbatch) const {
  return layer.rows == layer.output_rows
             ? output_gradient_of(layer, microbatch)
             : gathered_->part(0, static_cast<std::size_t>(layer.rows * layer.outputs));
}

void Perceptron::backward_to_input(int stream, int microbatch, const HeldLayer& layer,
                                   const Array& gradient) {
  if (layer.number == 0) return;
  const Array input_gradient = layer.rows == layer.input_rows
                                   ? input_gradient_of(layer, microbatch)
                                   : summands_->part(0, static_cast<std::size_t>(layer.rows * layer.inputs));
  arithmetic_.gemm(stream, {layer.rows, layer.inputs, layer.outputs}, false, true, 1, operand(gradient),
                   operand(matrix_of(layer, weights({layer.number, layer.number}))), 0, input_gradient);
}

void Perceptron::backward_to_matrix(int stream, long step, int microbatch, const HeldLayer& layer,
                                    const Array& gradient) {
  arithmetic_.gemm(stream, {layer.inputs, layer.outputs, layer.rows}, true, false, 1,
                   operand(input_of(layer, step, microbatch)), operand(gradient), layer.accumulates ? 1 : 0,
                   matrix_of(layer, gradients({layer.number, layer.number})));
}

double Perceptron::take_loss(int stream, long step) {
  if (losses_.empty()) return 0;
  double sum = 0;
  std::vector<float> losses(static_cast<std::size_t>(options_.micro_batch));
  for (int m = 0; m < options_.microbatches; ++m) {
    arithmetic_.copy_to_host(stream, losses_[slot(step, m)], losses.data());
    sum = std::accumulate(losses.begin(), losses.end(), sum);
  }
  return sum;
}

Array Perceptron::activation(int microbatch, int layer) const {
  const auto m = static_cast<std::size_t>(microbatch);
  if (holds(layer)) return held(layer).output.at(m);
  return held(layer + 1).input.at(m);
}

Array Perceptron::activation_gradient(int microbatch, int layer) const {
  if (!holds(layer)) return held(layer + 1).input_gradient.at(static_cast<std::size_t>(microbatch));
  if (!held(layer).ends_range)
    throw std::out_of_range(fmt::format("the gradient of layer {}'s output stays inside", layer));
  return output_gradient_of(held(layer), microbatch);
}

std::vector<Array> Perceptron::replicated_weights(LayerRange layers) const {
  std::vector<Array> arrays;
  for (int number = layers.first; number <= layers.last; ++number) {
    const HeldLayer& layer = held(number);
    if (layer.shard.outputs.of > 1) continue;
    if (layer.shard.inputs.of == 1) arrays.push_back(matrix_of(layer, weights({number, number})));
    arrays.push_back(bias_of(layer, weights({number, number})));
  }
  return arrays;
}

}  // namespace rehearse
