#include "simulator/costs/product.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace rehearse {
namespace {

// Tiles that a matrix product's library chooses from, the share of the large tile's rate that each reaches,
// and how much of the loss of a partly filled last wave shows. Fitted on published A100 training tables:
// Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM" (SC
// 2021), and Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (2022). The
// fits leave the share between 0.45 and 0.75 at a GEMM efficiency of 0.78 (stream-K and split-k kernels fill
// what is left of a wave).
struct Tile {
  double m, n, efficiency;
};
constexpr std::array<Tile, 4> kTiles = {{{256, 128, 1.0}, {128, 128, 0.93}, {128, 64, 0.78}, {64, 64, 0.60}}};
constexpr double kWaveQuantisation = 0.6;

// A convolution's gradient of its filters sums over all pixels: few results, each a long sum. Libraries split
// the sum until the device is full, in parts not shorter than this. Fitted with the P100's
// convolution_efficiency (512 to 2,048 do alike).
constexpr double kShortestSplit = 1024;

}  // namespace

ProductTime product_time(const ProductShape& shape, double rate, const Device& device, bool may_split) {
  const auto [m, n, k, batch] = shape;
  const double units = device.compute_units, prologue = device.gemm_prologue_k.value;
  ProductTime best;
  if (units <= 0) {
    best.seconds = 2 * m * n * (k + prologue) * batch / rate;
    return best;
  }
  best.seconds = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles)
    // A product is computed as it stands or transposed: the long side of the tile lies along either.
    for (bool turned : {false, true}) {
      const double tile_m = turned ? tile.n : tile.m, tile_n = turned ? tile.m : tile.n;
      double tiles = std::ceil(m / tile_m) * std::ceil(n / tile_n) * batch, length = k, parts = 1;
      if (may_split) {
        parts = std::max(1.0, std::min(std::floor(k / kShortestSplit), std::ceil(2 * units / tiles)));
        tiles *= parts;
        length /= parts;
      }
      const double waves = tiles / units;
      const double charged = waves + kWaveQuantisation * (std::ceil(waves) - waves);
      const double flops_of_wave = 2 * tile.m * tile.n * (length + prologue) * units;
      const double seconds = charged * flops_of_wave / (rate * tile.efficiency);
      if (seconds < best.seconds) best = {seconds, tile_m, tile_n, parts, waves};
    }
  return best;
}

}  // namespace rehearse
