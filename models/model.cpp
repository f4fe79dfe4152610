#include "models/model.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "models/kernels.hpp"

namespace rehearse {
namespace {

// Traffic per logit of softmax cross-entropy in fp32, both passes. The kernels of Megatron-LM's
// vocab_parallel_cross_entropy add up to 52: to fp32 6, maximum 4, subtract 8, exponential 8, sum 4, divide
// 8, backward scale 8, back to 16 bits 6. Fitting the step times of Narayanan et al. (SC'21, table 1),
// Korthikanti et al. (2022, table 5) and vTrain's (MICRO'24) single-node measurements requires 100 to 130.
// This is the middle of that range, divided between the passes as counted (38 and 14).
constexpr double kLossBytes = 115;
constexpr double kLossForwardShare = 38.0 / 52.0;

}  // namespace

Model::Model() = default;
Model::Model(const Model&) = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(const Model&) = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

void add_linear(LayerCost& layer, double rows, double out, double in, double element, bool input_gradient) {
  using Kind = Kernel::Kind;
  layer.parameters += in * out;
  layer.forward.push_back(product(Kind::gemm, rows, out, in, element));
  if (input_gradient) {
    layer.backward_input.push_back(product(Kind::gemm, rows, in, out, element));
    layer.backward_input.back().transposed = Transposed::b;
  }
  layer.backward_weight.push_back(product(Kind::gemm, out, in, rows, element));
  layer.backward_weight.back().transposed = Transposed::a;
}

double share_of(double size, int shards) {
  return shards == 1 ? size : std::ceil(size / shards);
}

double unfused_loss_bytes(Precision precision) {
  return element_bytes(precision) < 4 ? kLossBytes : kLossBytes - 12;  // fp32 logits need no conversion
}

double fused_loss_bytes(Precision precision) {
  return 3 * element_bytes(precision);
}

namespace {

constexpr double kSoftmaxBytes = 4;

// Returns the peak bytes per logit. In the forward pass, Megatron-LM's loss holds the logits and an fp32
// copy, which it overwrites with the softmax. In the backward pass, it turns the softmax into the gradient in
// place and casts the gradient to the precision of the logits
// (megatron/core/tensor_parallel/cross_entropy.py).
double loss_peak_bytes(const PassShape& pass) {
  constexpr double kCounted = 2;  // the given bytes are those of 16-bit logits
  const double element = element_bytes(pass.precision), given = pass.kernels.loss_peak_bytes;
  return given > 0 ? given + element - kCounted : kSoftmaxBytes + element;
}

}  // namespace

// All kernels are in the segment `sums`, including those for the maximum and the loss of each token.
void add_loss(LayerWriter& layer, int logits, const PassShape& pass, double rows, double vocabulary) {
  constexpr double kSumBytes = 4;
  const Value maximum{{Dim::batch, Dim::sequence}, rows, kSumBytes, false};
  const Value sum{{Dim::batch, Dim::sequence}, rows, kSumBytes};
  layer.add(SegmentKind::maximum, {logits}, {maximum});
  LayerCost& cost = layer.add(SegmentKind::sums, {logits, layer.last()}, {sum, sum});
  const Splits& splits = pass.splits;
  constexpr SegmentKind kHere = SegmentKind::sums;
  const double local = rows / splits.of(kHere, Dim::batch) / splits.of(kHere, Dim::sequence) *
                       share_of(vocabulary, splits.of(kHere, Dim::vocabulary));
  const double bytes = pass.loss_bytes > 0 ? pass.loss_bytes : unfused_loss_bytes(pass.precision);
  // Ratio of reads to writes as counted above.
  cost.forward.push_back(moves_between(kLossForwardShare * bytes * local, 22, 16));
  cost.backward_input.push_back(moves_between((1 - kLossForwardShare) * bytes * local, 8, 6));
  cost.forward.back().loss = cost.backward_input.back().loss = true;
  cost.logits = local;
  cost.saved_bytes = cost.loss_saved_bytes = std::min(kSoftmaxBytes, loss_peak_bytes(pass)) * local;
  cost.working_bytes = loss_peak_bytes(pass) * local - cost.saved_bytes;
  layer.add(SegmentKind::loss, {layer.last() - 1, layer.last()}, {});
}

double product_flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) sum += kernel.flops() * kernel.counted;
  return sum;
}

void add_accumulation(std::vector<Layer>& layers, double bytes_per_parameter) {
  if (bytes_per_parameter <= 0) return;
  for (Layer& layer : layers)
    for (Segment& segment : layer.segments)
      if (segment.cost.parameters > 0) {
        // Reads a 16-bit gradient and the sum, and writes the sum.
        segment.cost.backward_weight.push_back(moves(segment.cost.parameters * bytes_per_parameter, 2, 1));
      }
}

std::vector<Layer> model_layers(const Model& model, const PassShape& pass) {
  std::vector<Layer> layers = std::visit(
      [&](const auto& shape) {
        using Shape = std::decay_t<decltype(shape)>;
        if constexpr (std::is_same_v<Shape, Transformer>) {
          return transformer_layers(shape, pass);
        } else if constexpr (std::is_same_v<Shape, ConvolutionalNet>) {
          return convolutional_layers(shape, pass);
        } else if constexpr (std::is_same_v<Shape, MultiLayerPerceptron>) {
          return perceptron_layers(shape, pass);
        } else {
          return profiled_layers(shape, pass);
        }
      },
      model.shape);
  add_accumulation(layers, pass.accumulation_bytes);
  return layers;
}

double parameter_count(const Model& model) {
  double sum = 0;
  for (const LayerCost& layer : layer_costs(model, {})) sum += layer.parameters;
  return sum;
}

double active_parameter_count(const Model& model) {
  const auto* t = std::get_if<Transformer>(&model.shape);
  if (!t || t->experts == 0) return parameter_count(model);
  Transformer met = *t;
  met.experts = t->experts_per_token;
  Model active = model;
  active.shape = met;
  // The router still chooses among all experts.
  const double mixtures = t->layers - static_cast<double>(t->dense_layers.size());
  const double not_chosen = t->experts - t->experts_per_token;
  return parameter_count(active) + mixtures * not_chosen * (t->hidden + (t->router_bias ? 1 : 0));
}

// Counts the backward pass as twice the forward pass, as Narayanan et al. (SC'21) do, although the first
// layer needs no gradient of its input.
double flops_per_sample(const Model& model, double sequence_length) {
  PassShape pass;
  pass.sequence_length = sequence_length;
  double forward = 0;
  for (const LayerCost& layer : layer_costs(model, pass)) forward += product_flops(layer.forward);
  return 3 * forward;
}

double tokens_per_sample(const Model& model, double sequence_length) {
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  if (!transformer) return 0;
  return sequence_length > 0 ? sequence_length : transformer->sequence_length;
}

double sample_bytes(const Model& model, double sequence_length, Precision precision) {
  constexpr double kTokenBytes = 8;
  if (const auto* t = std::get_if<Transformer>(&model.shape); t && t->patch_size > 0)
    return t->image_channels * t->image_size * t->image_size * element_bytes(precision);
  if (std::holds_alternative<Transformer>(model.shape))
    return kTokenBytes * tokens_per_sample(model, sequence_length);
  double features = 0;
  if (const auto* net = std::get_if<ConvolutionalNet>(&model.shape))
    features = net->channels * net->image_size * net->image_size;
  if (const auto* perceptron = std::get_if<MultiLayerPerceptron>(&model.shape))
    features = perceptron->widths.front();
  return features * element_bytes(precision);
}

}  // namespace rehearse
