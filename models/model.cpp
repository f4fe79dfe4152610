#include "models/model.hpp"

#include <type_traits>

#include "models/kernels.hpp"

namespace rehearse {
namespace {

// Bytes moved for each logit by softmax cross-entropy in fp32, both passes. Counted over the kernels of
// Megatron-LM's vocab_parallel_cross_entropy it is 52: to fp32 6, maximum 4, subtract 8, exponential 8, sum
// 4, divide 8, backward scale 8, back to 16 bits 6. Fitting the step times of Narayanan et al. (SC'21, table
// 1), Korthikanti et al. (2022, table 5) and vTrain's (MICRO'24) single-node measurements asks for 100 to
// 130: the middle stands here, shared out to the passes as counted (38 and 14).
constexpr double kLossBytes = 115;
constexpr double kLossForwardShare = 38.0 / 52.0;

}  // namespace

void add_linear(LayerCost& layer, double rows, double out, double in, double element, bool input_gradient) {
  using Kind = Kernel::Kind;
  layer.parameters += in * out;
  layer.forward.push_back(product(Kind::gemm, rows, out, in, element));
  if (input_gradient) layer.backward_input.push_back(product(Kind::gemm, rows, in, out, element));
  layer.backward_weight.push_back(product(Kind::gemm, out, in, rows, element));
}

void add_loss(LayerCost& layer, double logits, double element) {
  const double bytes = element < 4 ? kLossBytes : kLossBytes - 12;  // fp32 logits need no conversion
  layer.forward.push_back(moves(kLossForwardShare * bytes * logits));
  layer.backward_input.push_back(moves((1 - kLossForwardShare) * bytes * logits));
  layer.forward.back().loss = layer.backward_input.back().loss = true;
  layer.logits = logits;
  layer.saved_bytes += kSoftmaxBytes * logits;
}

double product_flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) sum += kernel.flops();
  return sum;
}

// A layer's input is the output of the layer before it, so only the input has to be kept: a ReLU done in
// place leaves its output as the next layer's input, and nothing is left for recomputation to save.
std::vector<LayerCost> perceptron_layers(const MultiLayerPerceptron& shape, const PassShape& pass) {
  const double element = element_bytes(pass.precision), samples = pass.micro_batch;
  std::vector<LayerCost> layers;
  for (std::size_t i = 1; i < shape.widths.size(); ++i) {
    const double in = shape.widths[i - 1], out = shape.widths[i];
    const bool first = i == 1, last = i + 1 == shape.widths.size();
    LayerCost layer;
    layer.name = "fc" + std::to_string(i);
    add_linear(layer, samples, out, in, element, !first);
    const double result = element * samples * out;
    layer.parameters += out;  // the bias is added by the product; its gradient is a sum over the samples
    layer.backward_weight.push_back(moves(result));
    layer.saved_bytes = element * samples * in;
    if (last) {
      add_loss(layer, samples * out, element);
    } else {
      layer.forward.push_back(moves(2 * result));
      layer.backward_input.push_back(moves(3 * result));
      layer.output_bytes = result;
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

// Times hold for the micro-batch they were measured with.
std::vector<LayerCost> profiled_layers(const ProfiledModel& shape) {
  const auto fixed = [](double seconds) {
    Kernel kernel;
    kernel.kind = Kernel::Kind::fixed;
    kernel.seconds = seconds;
    return std::vector<Kernel>{kernel};
  };
  std::vector<LayerCost> layers;
  for (std::size_t i = 0; i < shape.forward_s.size(); ++i) {
    LayerCost layer;
    layer.name = "stage" + std::to_string(i);
    layer.forward = fixed(shape.forward_s[i]);
    layer.backward_input = fixed(shape.backward_input_s[i]);
    layer.backward_weight = fixed(shape.backward_weight_s[i]);
    if (!shape.parameters.empty()) layer.parameters = shape.parameters[i];
    if (i + 1 < shape.forward_s.size()) layer.output_bytes = shape.p2p_bytes;
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::vector<LayerCost> layer_costs(const Model& model, const PassShape& pass) {
  return std::visit(
      [&](const auto& shape) {
        using Shape = std::decay_t<decltype(shape)>;
        if constexpr (std::is_same_v<Shape, Transformer>) {
          return transformer_layers(shape, pass);
        } else if constexpr (std::is_same_v<Shape, ConvolutionalNet>) {
          return convolutional_layers(shape, pass);
        } else if constexpr (std::is_same_v<Shape, MultiLayerPerceptron>) {
          return perceptron_layers(shape, pass);
        } else {
          return profiled_layers(shape);
        }
      },
      model.shape);
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
  // The router still chooses among all.
  const double mixtures = t->layers - static_cast<double>(t->dense_layers.size());
  const double not_chosen = t->experts - t->experts_per_token;
  return parameter_count(active) + mixtures * not_chosen * (t->hidden + (t->router_bias ? 1 : 0));
}

// Backward is counted as twice the forward pass, as in Narayanan et al. (SC'21), although the first layer
// needs no gradient of its input.
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
