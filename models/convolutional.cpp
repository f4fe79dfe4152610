// Writes the kernels of convolutional networks as PyTorch runs them: convolutions by cuDNN; batch norm,
// in-place ReLU and pooling as separate kernels.
//
// Memory traffic: each kernel reads its operands and writes its results once, except that batch norm reads
// its input twice (for the statistics, then to normalize). Saved activations: the input of each convolution,
// norm and pool; an in-place ReLU leaves its output where the next layer saves its input.
#include <cmath>

#include "models/kernels.hpp"

namespace rehearse {
namespace {

using OpKind = Convolution::Kind;
constexpr double kPoolIndex = 8;  // bytes: PyTorch's max pool stores the position of each maximum as int64

struct Maps {
  double element, samples;
  double in(const Convolution& c) const { return samples * c.in_channels * c.in_size * c.in_size; }
  double out(const Convolution& c) const { return samples * c.out_channels * c.out_size * c.out_size; }
  double in_bytes(const Convolution& c) const { return element * in(c); }
  double out_bytes(const Convolution& c) const { return element * out(c); }
};

// Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016), F(4x4, r x r): each tile
// of the input, t = 4 + r - 1 pixels on a side, yields a 4x4 tile of the output with t^2 multiplications (r =
// 3: 36 instead of 144). Over all tiles and channels these are t^2 matrix products. Maps and filters are
// transformed before them and results are transformed back after them: a map is read or written once in its
// own size, and written and read once at t^2 / 16 times its size; a filter at t^2 / r^2 times. cuDNN
// implements this for 3x3 and 5x5 filters.
constexpr double kWinogradTile = 4;

double width_of_kernel(const Convolution& c) {
  return c.kernel_width > 0 ? c.kernel_width : c.kernel;
}

double window_of(const Convolution& c) {
  return c.kernel * width_of_kernel(c);
}

bool winograd_applies(const ConvolutionShape& shape) {
  const int side = shape.kernel_height;
  return (side == 3 || side == 5) && shape.kernel_width == side && shape.stride == 1;
}

// Maps are square; a kernel that is not square therefore needs different padding on its sides.
ConvolutionShape shape_of(const Convolution& c, double samples) {
  const auto whole = [](double number) { return static_cast<int>(std::lround(number)); };
  ConvolutionShape shape;
  shape.samples = samples;
  shape.in_channels = whole(c.in_channels);
  shape.out_channels = whole(c.out_channels);
  shape.height = shape.width = whole(c.in_size);
  shape.kernel_height = whole(c.kernel);
  shape.kernel_width = whole(width_of_kernel(c));
  shape.stride = whole(c.stride);
  shape.padding_height = whole(c.padding);
  shape.padding_width = shape.padding_height + (shape.kernel_width - shape.kernel_height) / 2;
  return shape;
}

void add_convolution(LayerCost& layer, const Convolution& c, const Maps& maps, bool input_gradient) {
  using Pass = ConvolutionShape::Pass;
  const auto add = [&](std::vector<Kernel>& kernels, Pass pass) {
    kernels.push_back(convolution_kernel(c, maps.samples, maps.element, pass));
  };
  layer.parameters += c.in_channels * c.out_channels * window_of(c);
  add(layer.forward, Pass::forward);
  if (input_gradient) add(layer.backward_input, Pass::backward_input);
  add(layer.backward_weight, Pass::backward_weight);
  if (c.bias) {
    layer.parameters += c.out_channels;
    layer.forward.push_back(moves(2 * maps.out_bytes(c)));
    layer.backward_weight.push_back(
        channel_sums(c.out_channels, {maps.out_bytes(c), c.out_size * c.out_size, maps.element}));
  }
}

void add_layer(LayerCost& layer, const Convolution& c, const Maps& maps, bool input_gradient) {
  const double in = maps.in_bytes(c), out = maps.out_bytes(c);
  switch (c.kind) {
    case OpKind::convolution:
      add_convolution(layer, c, maps, input_gradient);
      break;
    case OpKind::linear: {
      const double inputs = c.in_channels * c.in_size * c.in_size;
      add_linear(layer, maps.samples, c.out_channels, inputs, maps.element, input_gradient);
      if (c.bias) {  // added by the product
        layer.parameters += c.out_channels;
        layer.backward_weight.push_back(column_sums({out, c.out_channels, maps.element}));
      }
      break;
    }
    case OpKind::norm: {
      const RowArrays planes{in, c.in_size * c.in_size, maps.element};
      layer.parameters += 2 * c.out_channels;
      layer.forward.push_back(batch_norm(MemoryForm::batch_norm_forward, c.in_channels, planes));
      layer.backward_input.push_back(batch_norm(MemoryForm::batch_norm_sums, c.in_channels, planes));
      layer.backward_input.push_back(batch_norm(MemoryForm::batch_norm_backward, c.in_channels, planes));
      break;
    }
    case OpKind::activation:
      layer.forward.push_back(moves(2 * in));
      layer.backward_input.push_back(moves(3 * in, 2, 1));
      break;
    case OpKind::add:  // backward: the gradients of both branches are added where the block begins
      layer.forward.push_back(moves(3 * out, 2, 1));
      layer.backward_input.push_back(moves(3 * in, 2, 1));
      break;
    case OpKind::concatenate:  // copies; the backward pass copies back and adds the gradients of all
                               // branches
      layer.forward.push_back(moves(2 * out));
      layer.backward_input.push_back(moves(2 * out));
      if (c.branches > 1) layer.backward_input.push_back(moves(3 * (c.branches - 1) * in, 2, 1));
      break;
    case OpKind::max_pool: {
      const double indices = kPoolIndex * maps.out(c);
      layer.forward.push_back(moves_between(in + out + indices, in, out + indices));
      layer.backward_input.push_back(moves_between(in + out + indices, out + indices, in));
      break;
    }
    case OpKind::average_pool:
      layer.forward.push_back(moves_between(in + out, in, out));
      layer.backward_input.push_back(moves_between(in + out, out, in));
      break;
  }
}

double saved_bytes(const ConvolutionalNet::Block& block, const Maps& maps) {
  double saved = 0;
  for (const Convolution& c : block.layers) {
    switch (c.kind) {
      case OpKind::convolution:
        if (!c.input_kept) saved += maps.in_bytes(c);
        break;
      case OpKind::linear:
      case OpKind::norm:
        saved += maps.in_bytes(c);
        break;
      case OpKind::max_pool:
        saved += (c.input_kept ? 0 : maps.in_bytes(c)) + kPoolIndex * maps.out(c);
        break;
      case OpKind::average_pool:
      case OpKind::activation:
      case OpKind::add:
      case OpKind::concatenate:
        break;
    }
  }
  return saved;
}

}  // namespace

Kernel convolution_kernel(const ConvolutionShape& shape, double element) {
  using Pass = ConvolutionShape::Pass;
  const double window = static_cast<double>(shape.kernel_height) * shape.kernel_width;
  const double in = shape.in_channels, out = shape.out_channels, weights = in * out * window;
  const double in_pixels = shape.samples * shape.height * shape.width;
  const double out_pixels = shape.samples * shape.out_height() * shape.out_width();
  const auto product_of = [&](double m, double n, double k) {
    return product(Kernel::Kind::convolution, m, n, k, element);
  };
  Kernel kernel;
  switch (shape.pass) {
    case Pass::forward:
      kernel = product_of(out_pixels, out, in * window);
      break;
    case Pass::backward_input:  // each input pixel is seen by window / stride^2 outputs
      kernel = product_of(in_pixels, in, out * window * out_pixels / in_pixels);
      break;
    case Pass::backward_weight:
      kernel = product_of(out, in * window, out_pixels);
      break;
  }
  // Less than for an explicit product: each pixel is read only once for all windows that contain it.
  kernel.bytes = element * (in * in_pixels + out * out_pixels + weights);
  kernel.convolution = shape;
  if (!winograd_applies(shape)) return kernel;

  const double tiles = shape.samples * std::ceil(shape.out_height() / kWinogradTile) *
                       std::ceil(shape.out_width() / kWinogradTile);
  const double side = kWinogradTile + shape.kernel_height - 1, products = side * side;
  const double map_traffic = 1 + 2 * products / (kWinogradTile * kWinogradTile);
  const double filter_traffic = 1 + 2 * products / window;
  const double bytes =
      element * (map_traffic * (in * in_pixels + out * out_pixels) + filter_traffic * weights);
  if (shape.pass == Pass::forward)
    kernel.winograd = {tiles, out, in, products, bytes};
  else if (shape.pass == Pass::backward_input)
    kernel.winograd = {tiles, in, out, products, bytes};
  else
    kernel.winograd = {out, in, tiles, products, bytes};
  return kernel;
}

Kernel convolution_kernel(const Convolution& c, double samples, double element, ConvolutionShape::Pass pass) {
  ConvolutionShape shape = shape_of(c, samples);
  shape.pass = pass;
  return convolution_kernel(shape, element);
}

std::vector<Layer> convolutional_layers(const ConvolutionalNet& net, const PassShape& pass) {
  constexpr SegmentKind kBlock = SegmentKind::block;
  const Maps maps{element_bytes(pass.precision), pass.micro_batch / pass.splits.of(kBlock, Dim::batch)};
  const Maps whole{maps.element, pass.micro_batch};
  const Dims dims{Dim::batch, Dim::hidden};
  std::vector<Layer> layers;
  for (const ConvolutionalNet::Block& block : net.blocks) {
    const Convolution &begin = block.layers.front(), &end = block.layers.back();
    const bool first_block = layers.empty(), last_block = layers.size() + 1 == net.blocks.size();
    LayerWriter layer(block.name, {dims, whole.in(begin), maps.element, !first_block});
    LayerCost& cost = layer.add(kBlock, {0}, {{dims, whole.out(end), maps.element}});
    for (const Convolution& c : block.layers) {
      // Images need no gradient.
      add_layer(cost, c, maps, !(first_block && &c == &begin));
    }
    cost.saved_bytes = saved_bytes(block, maps);
    if (last_block) {
      add_loss(layer, layer.last(), pass, pass.micro_batch, whole.out(end) / pass.micro_batch);
    } else if (pass.recompute == Recompute::full) {
      // The last block's backward pass follows immediately, so recomputing it would free nothing.
      cost.recompute = cost.forward;
      cost.saved_bytes = maps.in_bytes(begin);
      layer.layer().recomputed = true;
    }
    layers.push_back(layer.take(last_block ? 0 : maps.out_bytes(end)));
  }
  return layers;
}

}  // namespace rehearse
