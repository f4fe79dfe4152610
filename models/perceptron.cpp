// Writes the kernels of multi-layer perceptrons, and of models for which only measured times are known.
//
// Hidden layers are taken in pairs: the first is split by its outputs and the second by its inputs, as
// Megatron-LM splits the two products of a feed-forward.
#include <algorithm>
#include <string>

#include "models/kernels.hpp"
#include "models/layer_writer.hpp"

namespace rehearse {
namespace {

// Kind of hidden layer `i` out of `hidden`, counted from 1.
SegmentKind hidden_kind(std::size_t i, std::size_t hidden) {
  if (i % 2 == 0) return SegmentKind::down;
  return i < hidden ? SegmentKind::up : SegmentKind::dense;
}

}  // namespace

// Saves only the input of each layer, which is the output of the layer before it: an in-place ReLU leaves its
// output as the next layer's input. Recomputation would save nothing.
std::vector<Layer> perceptron_layers(const MultiLayerPerceptron& shape, const PassShape& pass) {
  using enum Dim;
  const double element = element_bytes(pass.precision);
  const auto samples = [&](SegmentKind kind) {
    return pass.micro_batch / pass.splits.of(kind, batch) / pass.splits.of(kind, sequence);
  };
  std::vector<Layer> layers;
  SegmentKind source = SegmentKind::block;  // segment that produces the layer's input
  for (std::size_t i = 1; i < shape.widths.size(); ++i) {
    const double in = shape.widths[i - 1], out = shape.widths[i];
    const bool last = i + 1 == shape.widths.size();
    const SegmentKind kind = last ? SegmentKind::logits : hidden_kind(i, shape.widths.size() - 2);
    const bool columns = kind == SegmentKind::up || kind == SegmentKind::logits;
    const Dim inside = kind == SegmentKind::logits ? vocabulary : inner;
    const int degree = pass.splits.of(kind, inside);
    const double local_out = columns ? share_of(out, degree) : out;
    const double local_in = kind == SegmentKind::down ? share_of(in, degree) : in;

    const Value input{
        i == 1 || kind != SegmentKind::down ? Dims{batch, sequence, hidden} : Dims{batch, sequence, inner},
        pass.micro_batch * in, element, i > 1};
    LayerWriter layer("fc" + std::to_string(i), input);
    const Value output{Dims{batch, sequence}.with(columns ? inside : hidden), pass.micro_batch * out,
                       element};
    LayerCost* cost = &layer.add(kind, {0}, {output});
    add_linear(*cost, samples(kind), local_out, local_in, element, i > 1);
    cost->saved_bytes = element * samples(i == 1 ? kind : source) * local_in;
    if (kind == SegmentKind::down) cost = &layer.add(SegmentKind::residual, {1}, {output});
    source = layer.layer().segments.back().kind;
    const double result = element * samples(source) * local_out;
    // The product adds the bias; its gradient is a sum over the samples.
    cost->parameters += local_out;
    cost->backward_weight.push_back(column_sums({result, local_out, element}));
    if (last) {
      add_loss(layer, layer.last(), pass, pass.micro_batch, out);
      layers.push_back(layer.take(0));
    } else {
      cost->forward.push_back(moves(2 * result));
      cost->backward_input.push_back(moves(3 * result, 2, 1));
      layers.push_back(layer.take(result));
    }
  }
  return layers;
}

std::vector<Layer> profiled_layers(const ProfiledModel& shape, const PassShape& pass) {
  const double samples = shape.micro_batch > 0 ? pass.micro_batch / shape.micro_batch : 1;
  const auto fixed = [&](double seconds, const std::vector<double>& launches,
                         const std::vector<double>& waits_s, std::size_t part) {
    Kernel kernel;
    kernel.kind = Kernel::Kind::fixed;
    kernel.seconds = seconds * samples;
    if (!launches.empty()) kernel.launches = launches[part];
    if (!waits_s.empty()) kernel.wait_s = waits_s[part];
    return std::vector<Kernel>{kernel};
  };
  std::vector<Layer> layers;
  for (std::size_t i = 0; i < shape.forward_s.size(); ++i) {
    const auto between = [&](std::size_t part) {
      return Value{Dims{Dim::batch, Dim::hidden}, shape.p2p_bytes[part] * samples, 1, true};
    };
    LayerWriter layer(
        shape.names.empty() ? (shape.has_layers ? "layer" : "stage") + std::to_string(i) : shape.names[i],
        between(i > 0 ? i - 1 : 0));
    LayerCost& cost = layer.add(SegmentKind::block, {0}, {between(i)});
    cost.forward = fixed(shape.forward_s[i], shape.forward_kernels, shape.forward_wait_s, i);
    if (i == 0) cost.forward.front().data_wait_s = shape.data_wait_s;
    cost.backward_input = fixed(shape.backward_input_s[i], shape.backward_kernels, shape.backward_wait_s, i);
    cost.backward_weight = fixed(shape.backward_weight_s[i], {}, {}, i);
    if (!shape.parameters.empty()) cost.parameters = shape.parameters[i];
    layers.push_back(layer.take(i + 1 < shape.forward_s.size() ? shape.p2p_bytes[i] * samples : 0));
  }
  return layers;
}

}  // namespace rehearse
