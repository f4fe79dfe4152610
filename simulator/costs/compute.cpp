#include "simulator/costs/compute.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "simulator/costs/memory.hpp"

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

// Wide filters (3x3, most of them by Winograd's algorithm, which multiplies less than is counted) are this
// many times as fast as 1x1 filters: baidu-research/DeepBench, results/train, has 3.4 (P100, fp32), 3.3
// (P100, fp16), 3.5 (V100, fp32) and 3.0 (V100, tensor cores). A device tells one share, of convolutions
// mixed as in ResNet-50, with this share of the multiply-adds in 1x1 filters (He et al., 2016, table 1).
constexpr double kWideFilterSpeed = 3.3, kNarrowShare = 0.52;

double filter_speed(double window) {
  if (window <= 0) return 1;
  const double narrow = kNarrowShare + (1 - kNarrowShare) / kWideFilterSpeed;
  return window > 1 ? kWideFilterSpeed * narrow : narrow;
}

double fraction(const Sourced& share) {
  return share.value > 0 ? share.value : 1;
}

// A device without units for a format computes in fp32.
Precision computed_in(const Device& device, Precision precision) {
  return device.peak_flops[static_cast<std::size_t>(precision)].value > 0 ? precision : Precision::fp32;
}

double memory_time_s(double bytes, const Device& device) {
  if (bytes <= 0) return 0;
  return bytes / (device.memory_bandwidth.value * fraction(device.memory_efficiency));
}

double gemm_time_s(const Kernel& kernel, const Device& device, double peak, Precision precision) {
  const double rate = peak * fraction(device.gemm_efficiency_of(precision));
  const double k = kernel.k + device.gemm_prologue_k.value;
  if (device.compute_units <= 0) return 2 * kernel.m * kernel.n * k * kernel.batch / rate;
  double best_s = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles)
    // A product is computed as it stands or transposed: the long side of the tile lies along either.
    for (bool turned : {false, true}) {
      const double tile_m = turned ? tile.n : tile.m, tile_n = turned ? tile.m : tile.n;
      const double tiles = std::ceil(kernel.m / tile_m) * std::ceil(kernel.n / tile_n) * kernel.batch;
      const double waves = tiles / device.compute_units;
      const double charged = waves + kWaveQuantisation * (std::ceil(waves) - waves);
      const double flops_of_wave = 2 * tile.m * tile.n * k * device.compute_units;
      best_s = std::min(best_s, charged * flops_of_wave / (rate * tile.efficiency));
    }
  return best_s;
}

double optimizer_time_s(const Work& work, const Device& device) {
  const double measured = device.optimizer_bytes_per_parameter.value;
  double bytes = work.optimizer_bytes;
  if (work.parameters_updated > 0 && measured > 0) {
    // The device's figure is of mixed-precision Adam; what other optimizers move more than is counted is
    // taken to be in proportion.
    static const double counted = update_bytes(Optimizer::adam, Precision::bf16, Precision::bf16);
    bytes = bytes > 0 ? bytes * measured / counted : work.parameters_updated * measured;
  }
  return memory_time_s(bytes, device);
}

}  // namespace

double kernel_time_s(const Kernel& kernel, const Device& device, Precision precision) {
  if (kernel.kind == Kernel::Kind::fixed) return kernel.seconds * kernel.count;
  const Precision used = computed_in(device, precision);
  const double peak = device.peak_flops[static_cast<std::size_t>(used)].value;
  const double flops = 2 * kernel.m * kernel.n * kernel.k * kernel.batch;
  double arithmetic_s = 0;
  switch (kernel.kind) {
    case Kernel::Kind::gemm:
      arithmetic_s = gemm_time_s(kernel, device, peak, used);
      break;
    case Kernel::Kind::convolution:
      arithmetic_s =
          flops / (peak * fraction(device.convolution_efficiency_of(used)) * filter_speed(kernel.window));
      break;
    case Kernel::Kind::attention:
      arithmetic_s = flops / (peak * fraction(device.attention_efficiency));
      break;
    case Kernel::Kind::memory:
    case Kernel::Kind::fixed:
      break;
  }
  // Operands stream in while products are computed, so the slower of both sets the pace (the roofline:
  // Williams, Waterman, Patterson 2009).
  const double one_s = std::max(arithmetic_s, memory_time_s(kernel.bytes, device));
  return kernel.count * (one_s + device.kernel_overhead_s.value);
}

double work_time_s(const Work& work, const Device& device, double speed) {
  double seconds = optimizer_time_s(work, device);
  for (const Kernel& kernel : work.kernels) seconds += kernel_time_s(kernel, device, work.precision);
  return seconds / speed;
}

}  // namespace rehearse
