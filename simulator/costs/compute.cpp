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

// A convolution's gradient of its filters sums over all pixels: few results, each a long sum. Libraries split
// the sum until the device is full, in parts not shorter than this. Fitted with the P100's
// convolution_efficiency (512 to 2,048 do alike).
constexpr double kShortestSplit = 1024;

double fraction(const Sourced& share) {
  return share.value > 0 ? share.value : 1;
}

double memory_time_s(double bytes, const Device& device) {
  if (bytes <= 0) return 0;
  return bytes / (device.memory_bandwidth.value * fraction(device.memory_efficiency));
}

// `batch` products of [m,k] x [k,n] at `rate`, the FLOP/s of long ones; `may_split`: along k too.
double product_time_s(double m, double n, double k, double batch, double rate, const Device& device,
                      bool may_split) {
  const double units = device.compute_units, prologue = device.gemm_prologue_k.value;
  if (units <= 0) return 2 * m * n * (k + prologue) * batch / rate;
  double best_s = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles)
    // A product is computed as it stands or transposed: the long side of the tile lies along either.
    for (bool turned : {false, true}) {
      const double tile_m = turned ? tile.n : tile.m, tile_n = turned ? tile.m : tile.n;
      double tiles = std::ceil(m / tile_m) * std::ceil(n / tile_n) * batch, length = k;
      if (may_split) {
        const double parts =
            std::max(1.0, std::min(std::floor(k / kShortestSplit), std::ceil(2 * units / tiles)));
        tiles *= parts;
        length /= parts;
      }
      const double waves = tiles / units;
      const double charged = waves + kWaveQuantisation * (std::ceil(waves) - waves);
      const double flops_of_wave = 2 * tile.m * tile.n * (length + prologue) * units;
      best_s = std::min(best_s, charged * flops_of_wave / (rate * tile.efficiency));
    }
  return best_s;
}

// As libraries do that try all their algorithms first: an implicit product, or Winograd's algorithm, whose
// transforms are kernels of their own. Tensor cores are given implicit products.
double convolution_time_s(const Kernel& kernel, const Device& device, double peak, Precision precision) {
  const double implicit_s =
      std::max(product_time_s(kernel.m, kernel.n, kernel.k, kernel.batch,
                              peak * fraction(device.convolution_efficiency_of(precision)), device, true),
               memory_time_s(kernel.bytes, device));
  const Kernel::Winograd& w = kernel.winograd;
  const bool tensor_cores = device.compute_capability >= 70 && precision != Precision::fp32;
  if (w.batch <= 0 || device.compute_capability == 0 || tensor_cores) return implicit_s;
  const double products_s = product_time_s(
      w.m, w.n, w.k, w.batch, peak * fraction(device.gemm_efficiency_of(precision)), device, true);
  return std::min(implicit_s, products_s + memory_time_s(w.bytes, device));
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

Precision computed_in(const Device& device, Kernel::Kind kind, Precision precision) {
  const Precision wanted =
      kind != Kernel::Kind::gemm && casts_operands(precision) ? stored_precision(precision) : precision;
  return device.peak_flops[static_cast<std::size_t>(wanted)].value > 0 ? wanted : Precision::fp32;
}

double kernel_time_s(const Kernel& kernel, const Device& device, Precision precision) {
  if (kernel.kind == Kernel::Kind::fixed) return kernel.seconds * kernel.count;
  const Precision used = computed_in(device, kernel.kind, precision);
  const double peak = device.peak_flops[static_cast<std::size_t>(used)].value;
  const double flops = 2 * kernel.m * kernel.n * kernel.k * kernel.batch;
  double arithmetic_s = 0;
  switch (kernel.kind) {
    case Kernel::Kind::gemm:
      arithmetic_s = product_time_s(kernel.m, kernel.n, kernel.k, kernel.batch,
                                    peak * fraction(device.gemm_efficiency_of(used)), device, false);
      break;
    case Kernel::Kind::convolution:
      return kernel.count * (convolution_time_s(kernel, device, peak, used) + device.kernel_overhead_s.value);
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

Device device_at(const Cluster& cluster, Endpoint endpoint) {
  if (endpoint < cluster.devices()) return cluster.node().device;
  Device device = device_preset("cpu-core");
  for (Sourced& peak : device.peak_flops) peak.value *= cluster.node().cpu_cores;
  const double given = cluster.node().cpu_memory_bandwidth;
  device.memory_bandwidth.value =
      given > 0 ? given : device.memory_bandwidth.value * cluster.node().cpu_cores;
  return device;
}

}  // namespace rehearse
