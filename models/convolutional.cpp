// The kernels of convolutional networks as PyTorch runs them: convolutions by cuDNN, batch norm, ReLU in
// place and pooling each as kernels of their own.
//
// Memory traffic: each kernel reads its operands and writes its results once, batch norm reads its input
// twice (for the statistics, then to normalise). Saved: the input of each convolution, norm and pool; a ReLU
// in place leaves its output where the next layer keeps its input.
#include <cmath>

#include "models/kernels.hpp"

namespace rehearse {
namespace {

using Kind = Convolution::Kind;
constexpr double kPoolIndex = 8;  // bytes: PyTorch's max pool keeps where each maximum stood as int64

struct Maps {
  double element, samples;
  double in(const Convolution& c) const { return samples * c.in_channels * c.in_size * c.in_size; }
  double out(const Convolution& c) const { return samples * c.out_channels * c.out_size * c.out_size; }
  double in_bytes(const Convolution& c) const { return element * in(c); }
  double out_bytes(const Convolution& c) const { return element * out(c); }
};

// Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016), F(4x4, r x r): each tile
// of the input, t = 4 + r - 1 pixels a side, gives a 4x4 tile of the output by t^2 products (r = 3: 36
// instead of 144). Over all tiles and channels these are t^2 matrix products, before which maps and filters
// are transformed and after which results are transformed back: a map is read or written once as it is, and
// written and read t^2 / 16 times as large; a filter t^2 / r^2 times. cuDNN has it for filters of 3x3 and
// 5x5.
constexpr double kWinogradTile = 4;

bool winograd_applies(const Convolution& c) {
  const double width = c.kernel_width > 0 ? c.kernel_width : c.kernel;
  return (c.kernel == 3 || c.kernel == 5) && width == c.kernel && c.stride == 1;
}

// An implicit product: rows are the pixels of all samples, k the inputs that each output pixel sees.
void add_convolution(LayerCost& layer, const Convolution& c, const Maps& maps, bool input_gradient) {
  const double window = c.kernel * (c.kernel_width > 0 ? c.kernel_width : c.kernel);
  const double weights = c.in_channels * c.out_channels * window;
  const double bytes = maps.in_bytes(c) + maps.out_bytes(c) + maps.element * weights;
  const double out_pixels = maps.samples * c.out_size * c.out_size;
  const double in_pixels = maps.samples * c.in_size * c.in_size;
  const double tiles_a_side = std::ceil(c.out_size / kWinogradTile);
  const double tiles = maps.samples * tiles_a_side * tiles_a_side;
  const double side = kWinogradTile + c.kernel - 1, products = side * side;
  const double map_traffic = 1 + 2 * products / (kWinogradTile * kWinogradTile);
  const double filter_traffic = 1 + 2 * products / window;
  const double winograd_bytes =
      maps.element * (map_traffic * (maps.in(c) + maps.out(c)) + filter_traffic * weights);
  const auto implicit = [&](double m, double n, double k, double tiles_m, double tiles_n, double tiles_k) {
    Kernel kernel = product(Kernel::Kind::convolution, m, n, k, maps.element);
    kernel.bytes = bytes;  // less than an explicit product's: a pixel is read once for all windows it is in
    if (winograd_applies(c)) kernel.winograd = {tiles_m, tiles_n, tiles_k, products, winograd_bytes};
    return kernel;
  };
  layer.parameters += weights;
  layer.forward.push_back(
      implicit(out_pixels, c.out_channels, c.in_channels * window, tiles, c.out_channels, c.in_channels));
  if (input_gradient) {  // an input pixel is seen by window / stride^2 outputs
    layer.backward_input.push_back(implicit(in_pixels, c.in_channels,
                                            c.out_channels * window * out_pixels / in_pixels, tiles,
                                            c.in_channels, c.out_channels));
  }
  layer.backward_weight.push_back(
      implicit(c.out_channels, c.in_channels * window, out_pixels, c.out_channels, c.in_channels, tiles));
  if (c.bias) {
    layer.parameters += c.out_channels;
    layer.forward.push_back(moves(2 * maps.out_bytes(c)));
    layer.backward_weight.push_back(moves(maps.out_bytes(c)));
  }
}

void add_layer(LayerCost& layer, const Convolution& c, const Maps& maps, bool input_gradient) {
  const double in = maps.in_bytes(c), out = maps.out_bytes(c);
  switch (c.kind) {
    case Kind::convolution:
      add_convolution(layer, c, maps, input_gradient);
      break;
    case Kind::linear: {
      const double inputs = c.in_channels * c.in_size * c.in_size;
      add_linear(layer, maps.samples, c.out_channels, inputs, maps.element, input_gradient);
      if (c.bias) {  // added by the product
        layer.parameters += c.out_channels;
        layer.backward_weight.push_back(moves(out));
      }
      break;
    }
    case Kind::norm:
      layer.parameters += 2 * c.out_channels;
      layer.forward.push_back(moves(3 * in));
      layer.backward_input.push_back(moves(2 * in));  // reads x and dy for the sums,
      layer.backward_input.push_back(moves(3 * in));  // reads them again and writes dx
      break;
    case Kind::activation:
      layer.forward.push_back(moves(2 * in));
      layer.backward_input.push_back(moves(3 * in));
      break;
    case Kind::add:  // backward: the gradients of both branches are added where the block begins
      layer.forward.push_back(moves(3 * out));
      layer.backward_input.push_back(moves(3 * in));
      break;
    case Kind::concatenate:  // copies; backward: copies back, and adds the gradients of all branches
      layer.forward.push_back(moves(2 * out));
      layer.backward_input.push_back(moves(2 * out));
      if (c.branches > 1) layer.backward_input.push_back(moves(3 * (c.branches - 1) * in));
      break;
    case Kind::max_pool: {
      const double indices = kPoolIndex * maps.out(c);
      layer.forward.push_back(moves(in + out + indices));
      layer.backward_input.push_back(moves(in + out + indices));
      break;
    }
    case Kind::average_pool:
      layer.forward.push_back(moves(in + out));
      layer.backward_input.push_back(moves(in + out));
      break;
  }
}

double saved_bytes(const ConvolutionalNet::Block& block, const Maps& maps) {
  double saved = 0;
  for (const Convolution& c : block.layers) {
    switch (c.kind) {
      case Kind::convolution:
        if (!c.input_kept) saved += maps.in_bytes(c);
        break;
      case Kind::linear:
      case Kind::norm:
        saved += maps.in_bytes(c);
        break;
      case Kind::max_pool:
        saved += (c.input_kept ? 0 : maps.in_bytes(c)) + kPoolIndex * maps.out(c);
        break;
      case Kind::average_pool:
      case Kind::activation:
      case Kind::add:
      case Kind::concatenate:
        break;
    }
  }
  return saved;
}

}  // namespace

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
      // The last block's backward follows at once: recomputing it would free nothing.
      cost.recompute = cost.forward;
      cost.saved_bytes = maps.in_bytes(begin);
      layer.layer().recomputed = true;
    }
    layers.push_back(layer.take(last_block ? 0 : maps.out_bytes(end)));
  }
  return layers;
}

}  // namespace rehearse
