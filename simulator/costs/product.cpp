#include "simulator/costs/product.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

namespace rehearse {
namespace {

// The tiles from which a matrix-product library chooses, and the share of the largest tile's rate that each
// reaches.
struct Tile {
  double m, n, efficiency;
};

// Tiles of tensor cores. The first four are fitted to published A100 training tables: Narayanan et al.,
// "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM" (SC 2021), and
// Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (2022). Smaller tiles
// take as long for a step along k as 64 x 64 tiles: DeepBench's products with a side of at most 64 take 10 to
// 11 ns per element of k on a V100 (baidu-research/DeepBench results/train/DeepBench_NV_V100.xlsx), and a 64
// x 64 tile at 0.60 of its rate takes 9.8 ns.
constexpr std::array<Tile, 6> kTensorTiles = {
    {{256, 128, 1.0}, {128, 128, 0.93}, {128, 64, 0.78}, {64, 64, 0.60}, {64, 32, 0.30}, {32, 32, 0.15}}};
constexpr std::size_t kTilesOfConvolutions = 4;

// Tiles of units that multiply and add single numbers, which small tiles keep busier. Fitted to DeepBench's
// fp32 products on a V100, every other shape (58 of 113 rows; same source); tests/command_kernel_table.cpp
// has the errors of all rows.
constexpr std::array<Tile, 6> kSingleTiles = {
    {{256, 128, 1.0}, {128, 128, 0.97}, {128, 64, 0.92}, {64, 64, 0.90}, {64, 32, 0.72}, {32, 32, 0.58}}};

// The gradient of a convolution's filters sums over all pixels: it has few results, each a long sum.
// Libraries split the sum until the device is full, into parts no shorter than this. Fitted together with the
// P100's convolution_efficiency (512 to 2,048 fit equally well).
constexpr double kShortestSplit = 1024;

// Since version 9 (Volta), cuBLAS also splits products: DeepBench's products with k = 500,000 read their
// operands at 570 to 850 GB/s on a V100 and at 100 to 190 GB/s on a P100. Except for the last one, parts are
// no shorter than this (128 to 2,048 fit those rows equally well), and only products that cannot fill the
// device even with tiles of kFullTile are split.
constexpr int kFirstCapabilityOfSplits = 70;
constexpr double kShortestSplitOfProducts = 512, kFullTile = 64;
// Each part writes its sums in fp32, and a second kernel reads them.
constexpr double kBytesOfSum = 8;

std::span<const Tile> tiles_of(const ProductUnits& units, const Device& device) {
  if (units.convolution || device.compute_capability == 0)
    return std::span(kTensorTiles).first(kTilesOfConvolutions);
  return units.tensor_cores ? kTensorTiles : kSingleTiles;
}

// The numbers of parts that a library tries for a product of `tiles` tiles: the largest that needs no second
// wave, and the smallest that fills one.
struct SplitCounts {
  double fewer = 1, more = 1;
};
SplitCounts splits_of(const ProductShape& shape, const ProductUnits& units, const Device& device,
                      double tiles) {
  const double all = device.compute_units;
  if (units.convolution) {
    const double most = std::floor(shape.k / kShortestSplit);
    const double parts = std::max(1.0, std::min(most, std::ceil(2 * all / tiles)));
    return {parts, parts};
  }
  const bool few = std::ceil(shape.m / kFullTile) * std::ceil(shape.n / kFullTile) * shape.batch < all;
  if (device.compute_capability < kFirstCapabilityOfSplits || !few) return {};
  const double most = std::ceil(shape.k / kShortestSplitOfProducts);
  return {std::max(1.0, std::min(most, std::floor(all / tiles))),
          std::max(1.0, std::min(most, std::ceil(all / tiles)))};
}

// Returns the seconds needed to write the sums of the parts and to add them.
double adding_time_s(const ProductShape& shape, double parts, const Device& device) {
  const double efficiency = device.memory_efficiency.value > 0 ? device.memory_efficiency.value : 1;
  return kBytesOfSum * shape.m * shape.n * shape.batch * parts /
             (device.memory_bandwidth.value * efficiency) +
         device.kernel_overhead_s.value;
}

// Returns the time of `waves` in units of a full wave. `quantisation` is the share of a partly filled wave's
// idle part that is charged.
double charged_waves(double waves, double quantisation) {
  return waves + quantisation * (std::ceil(waves) - waves);
}

}  // namespace

ProductTime product_time(const ProductShape& shape, const ProductUnits& units, const Device& device) {
  const auto [m, n, k, batch] = shape;
  const double prologue = device.gemm_prologue_k.value;
  const double wave_quantisation = device.products.wave_quantisation.value;
  ProductTime best;
  // A product with a vector has a separate kernel, which keeps up with memory.
  const bool vector = std::min(m, n) <= 1 && device.compute_capability > 0 && !units.convolution;
  if (device.compute_units <= 0 || vector) {
    best.seconds = 2 * m * n * (k + prologue) * batch / (units.rate * device.free_share());
    return best;
  }
  best.seconds = std::numeric_limits<double>::infinity();
  double beside_s = best.seconds;
  for (const Tile& tile : tiles_of(units, device))
    // A product is computed directly or transposed, so the tile's long side can be along either dimension.
    for (const bool turned : {false, true}) {
      const double share =
          tile.efficiency < 1 ? std::min(1.0, tile.efficiency * device.products.small_tiles.value) : 1;
      const double tile_m = turned ? tile.n : tile.m, tile_n = turned ? tile.m : tile.n;
      const double tiles = std::ceil(m / tile_m) * std::ceil(n / tile_n) * batch;
      const SplitCounts splits = splits_of(shape, units, device, tiles);
      double last = 0;
      // Convolutions are split whenever possible.
      for (const double parts : {units.convolution ? splits.fewer : 1.0, splits.fewer, splits.more}) {
        if (parts == last) continue;
        last = parts;
        double length = k / parts;
        if (parts > 1 && !units.convolution) length = std::max(length, kShortestSplitOfProducts);
        const double waves = tiles * parts / device.compute_units;
        const double flops_of_tile = 2 * tile.m * tile.n * (length + prologue);
        const double wave_s = flops_of_tile * device.compute_units / (units.rate * share);
        const double adding_s = parts > 1 && !units.convolution ? adding_time_s(shape, parts, device) : 0;
        const double seconds = charged_waves(waves, wave_quantisation) * wave_s + adding_s;
        if (seconds >= best.seconds) continue;
        best = {seconds, tile_m, tile_n, parts, waves};
        beside_s = charged_waves(waves / device.free_share(), wave_quantisation) * wave_s + adding_s;
      }
    }
  // The library chooses as if the entire device were free.
  best.seconds = beside_s;
  return best;
}

}  // namespace rehearse
