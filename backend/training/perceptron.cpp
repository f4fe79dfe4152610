#include "backend/training/perceptron.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "models/text/error.hpp"

namespace rehearse {
namespace {

std::vector<long> whole_widths(const MultiLayerPerceptron& shape) {
  std::vector<long> widths;
  for (const double width : shape.widths) {
    widths.push_back(std::lround(width));
    if (widths.back() < 1 || static_cast<double>(widths.back()) != width)
      throw RunError(fmt::format("a perceptron of width {}; allowed: whole numbers from 1 on", width));
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

Precision storage(Precision precision) {
  return element_bytes(precision) < 4 ? precision : Precision::fp32;
}

}  // namespace

std::vector<float> initial_weights(const MultiLayerPerceptron& shape, std::uint64_t seed, int layer) {
  const auto i = static_cast<std::size_t>(layer);
  const long inputs = std::lround(shape.widths.at(i)), outputs = std::lround(shape.widths.at(i + 1));
  const std::size_t weights = weight_elements(inputs, outputs);
  std::vector<float> result(weights + static_cast<std::size_t>(outputs));
  standard_normal(seed, RandomUse::weights, i, result.data(), static_cast<long>(weights));
  const double deviation = std::sqrt(2.0 / static_cast<double>(inputs));
  for (std::size_t e = 0; e < weights; ++e) result[e] = static_cast<float>(deviation * result[e]);
  return result;
}

std::vector<float> initial_weights(const MultiLayerPerceptron& shape, std::uint64_t seed, LayerRange layers) {
  std::vector<float> result;
  for (int layer = layers.first; layer <= layers.last; ++layer) {
    const std::vector<float> more = initial_weights(shape, seed, layer);
    result.insert(result.end(), more.begin(), more.end());
  }
  return result;
}

Perceptron::Perceptron(Arithmetic& arithmetic, const MultiLayerPerceptron& shape, PerceptronOptions options)
    : arithmetic_(arithmetic),
      widths_(whole_widths(shape)),
      options_(std::move(options)),
      data_(options_.seed, widths_.front(), widths_.back()) {
  check(options_, layers());
  std::size_t offset = 0;
  for (const LayerRange& range : options_.held)
    for (int number = range.first; number <= range.last; ++number) {
      Layer layer;
      layer.number = number;
      layer.inputs = widths_[static_cast<std::size_t>(number)];
      layer.outputs = widths_[static_cast<std::size_t>(number) + 1];
      layer.offset = offset;
      layer.parameters = parameters(number);
      // Ranges that touch are one: nothing is exchanged between them.
      layer.begins_range = held_.empty() || held_.back().number + 1 < number;
      if (layer.begins_range && !held_.empty()) held_.back().ends_range = true;
      offset += layer.parameters;
      held_.push_back(std::move(layer));
    }
  (void)OwnedArray(arithmetic_, 0, options_.precision);  // refused here if the device does not compute in it
  if (held_.empty()) return;
  held_.back().ends_range = true;
  allocate_flat(shape);
  for (Layer& layer : held_) allocate_activations(layer);
  allocate_batches();
}

void Perceptron::allocate_flat(const MultiLayerPerceptron& shape) {
  const std::size_t elements = held_.back().offset + held_.back().parameters;
  const auto in_fp32 = [&] { return OwnedArray(arithmetic_, elements, Precision::fp32); };
  weights_ = OwnedArray(arithmetic_, elements, storage(options_.precision));
  gradients_ = OwnedArray(arithmetic_, elements, storage(options_.gradient_precision));
  if (element_bytes(options_.precision) < 4) master_ = in_fp32();
  if (has_momentum(options_.optimizer.kind)) momentum_ = in_fp32();
  if (has_second_moment(options_.optimizer.kind)) second_moment_ = in_fp32();
  for (const Layer& layer : held_) {
    const LayerRange only{layer.number, layer.number};
    const std::vector<float> initial = initial_weights(shape, options_.seed, layer.number);
    arithmetic_.copy_to_device(0, initial.data(), master_weights(only));
    cast_weights(0, only);
  }
  arithmetic_.settle(0);
}

// tf32 is a way to multiply, so operands of products say it; what is only stored is fp32.
void Perceptron::allocate_activations(Layer& layer) {
  const auto boundary = [&](std::vector<OwnedArray>& arrays, long width, Precision precision, int count) {
    for (int i = 0; i < count; ++i)
      arrays.emplace_back(arithmetic_, static_cast<std::size_t>(options_.micro_batch * width), precision);
  };
  const int each = options_.microbatches;
  const Precision precision = storage(options_.precision);
  const bool loss = layer.number + 1 == layers();
  if (layer.begins_range && layer.number > 0) {
    boundary(layer.input, layer.inputs, precision, each);
    boundary(layer.input_gradient, layer.inputs, precision, each);
  }
  boundary(layer.output, layer.outputs, loss ? Precision::fp32 : precision, each);
  boundary(layer.output_gradient, layer.outputs, precision, layer.ends_range ? each : 1);
}

void Perceptron::allocate_batches() {
  kept_.assign(static_cast<std::size_t>(options_.kept_steps), -1);
  const std::size_t batches = kept_.size() * static_cast<std::size_t>(options_.microbatches);
  const auto samples = static_cast<std::size_t>(options_.micro_batch);
  if (holds(0))
    inputs_ = EqualArrays(arithmetic_, batches, samples * static_cast<std::size_t>(widths_.front()),
                          storage(options_.precision));
  if (!holds(layers() - 1) || options_.loss_elsewhere) return;
  labels_ = EqualArrays(arithmetic_, batches, samples, Precision::fp32);
  losses_ = EqualArrays(arithmetic_, batches, samples, Precision::fp32);
}

bool Perceptron::holds(int layer) const {
  return std::any_of(held_.begin(), held_.end(), [&](const Layer& l) { return l.number == layer; });
}

std::size_t Perceptron::parameters(int layer) const {
  const auto i = static_cast<std::size_t>(layer);
  return weight_elements(widths_.at(i) + 1, widths_.at(i + 1));
}

Perceptron::Layer& Perceptron::held(int layer) {
  return const_cast<Layer&>(std::as_const(*this).held(layer));
}

const Perceptron::Layer& Perceptron::held(int layer) const {
  for (const Layer& candidate : held_)
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
      for (std::size_t s = 0; s < size; ++s) data_.features(numbers[s], &inputs[s * features]);
      arithmetic_.copy_to_device(stream, inputs.data(), inputs_[slot(step, m)]);
    }
    if (!labels_.empty()) {
      for (std::size_t s = 0; s < size; ++s) labels[s] = static_cast<float>(data_.label(numbers[s]));
      arithmetic_.copy_to_device(stream, labels.data(), labels_[slot(step, m)]);
    }
  }
}

Array Perceptron::input(long step, int microbatch) {
  kept_.at(static_cast<std::size_t>(step) % kept_.size()) = step;
  return inputs_[slot(step, microbatch)];
}

Array Perceptron::input_of(const Layer& layer, long step, int microbatch) const {
  const auto m = static_cast<std::size_t>(microbatch);
  if (layer.number == 0) return inputs_[slot(step, microbatch)];
  return layer.begins_range ? layer.input.at(m) : held(layer.number - 1).output.at(m);
}

Array Perceptron::output_gradient_of(const Layer& layer, int microbatch) const {
  return layer.output_gradient.at(layer.ends_range ? static_cast<std::size_t>(microbatch) : 0);
}

// Operands of products carry the precision of training: tf32 where that is what is asked for.
Array Perceptron::operand(Array array) const {
  if (options_.precision == Precision::tf32) array.precision = Precision::tf32;
  return array;
}

void Perceptron::forward(int stream, long step, int microbatch, LayerRange layers) {
  for (int layer = layers.first; layer <= layers.last; ++layer)
    forward_layer(stream, step, microbatch, held(layer));
}

void Perceptron::forward_layer(int stream, long step, int microbatch, Layer& layer) {
  const Array output = layer.output.at(static_cast<std::size_t>(microbatch));
  const Array parameters = weights({layer.number, layer.number});
  const std::size_t matrix = weight_elements(layer.inputs, layer.outputs);
  const bool loss = layer.number + 1 == layers();
  arithmetic_.gemm(stream, {options_.micro_batch, layer.outputs, layer.inputs}, false, false, 1,
                   operand(input_of(layer, step, microbatch)), operand(parameters.part(0, matrix)), 0,
                   output);
  arithmetic_.add_bias(stream, output, parameters.part(matrix, parameters.elements - matrix), !loss);
  if (!loss || options_.loss_elsewhere) return;
  const std::size_t number = slot(step, microbatch);
  arithmetic_.softmax_cross_entropy(stream, output, labels_[number],
                                    static_cast<float>(1 / options_.batch_samples), losses_[number],
                                    output_gradient_of(layer, microbatch));
}

void Perceptron::backward(int stream, long step, int microbatch, LayerRange layers) {
  for (int layer = layers.last; layer >= layers.first; --layer)
    backward_layer(stream, step, microbatch, held(layer));
}

void Perceptron::backward_layer(int stream, long step, int microbatch, Layer& layer) {
  const Array gradient = output_gradient_of(layer, microbatch);
  const Array parameters = weights({layer.number, layer.number});
  const Array sums = gradients({layer.number, layer.number});
  const std::size_t matrix = weight_elements(layer.inputs, layer.outputs);
  const bool accumulate = layer.gradient_step == step && options_.sum_microbatches;
  layer.gradient_step = step;
  if (layer.number + 1 < layers())
    arithmetic_.activation_backward(stream, layer.output.at(static_cast<std::size_t>(microbatch)), gradient);
  if (layer.number > 0) {
    const Array input_gradient = layer.begins_range
                                     ? layer.input_gradient.at(static_cast<std::size_t>(microbatch))
                                     : output_gradient_of(held(layer.number - 1), microbatch);
    arithmetic_.gemm(stream, {options_.micro_batch, layer.inputs, layer.outputs}, false, true, 1,
                     operand(gradient), operand(parameters.part(0, matrix)), 0, input_gradient);
  }
  arithmetic_.gemm(stream, {layer.inputs, layer.outputs, options_.micro_batch}, true, false, 1,
                   operand(input_of(layer, step, microbatch)), operand(gradient), accumulate ? 1 : 0,
                   sums.part(0, matrix));
  arithmetic_.column_sums(stream, gradient, sums.part(matrix, sums.elements - matrix), accumulate);
}

void Perceptron::update(int stream, LayerRange layers) {
  const auto of = [](const OwnedArray& whole, std::size_t offset, std::size_t elements) {
    return whole->elements > 0 ? whole->part(offset, elements) : Array{};
  };
  for (int first = layers.first; first <= layers.last;) {
    const long step = held(first).steps + 1;
    int last = first;
    while (last < layers.last && held(last + 1).steps + 1 == step) ++last;
    const LayerRange together{first, last};
    const Array now = weights(together);
    const std::size_t offset = held(first).offset;
    arithmetic_.update(stream, options_.optimizer, step,
                       {now, master_weights(together), gradients(together),
                        of(momentum_, offset, now.elements), of(second_moment_, offset, now.elements)});
    for (int layer = first; layer <= last; ++layer) held(layer).steps = step;
    first = last + 1;
  }
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

Array Perceptron::flat(const OwnedArray& whole, LayerRange layers) const {
  const Layer& first = held(layers.first);
  std::size_t elements = 0;
  for (int layer = layers.first; layer <= layers.last; ++layer) elements += held(layer).parameters;
  return whole->part(first.offset, elements);
}

Array Perceptron::weights(LayerRange layers) const {
  return flat(weights_, layers);
}

Array Perceptron::gradients(LayerRange layers) const {
  return flat(gradients_, layers);
}

Array Perceptron::master_weights(LayerRange layers) const {
  return flat(master_->elements > 0 ? master_ : weights_, layers);
}

void Perceptron::cast_weights(int stream, LayerRange layers) {
  if (master_->elements > 0) arithmetic_.copy(stream, master_weights(layers), weights(layers));
}

}  // namespace rehearse
