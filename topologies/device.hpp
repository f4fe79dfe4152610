// A device: peaks, memory and the few constants with which compute time is predicted, each with its source.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "models/kernel.hpp"
#include "models/precision.hpp"
#include "models/text/document.hpp"

namespace rehearse {

// A number, its basis and its source. `interpolated`: copied or scaled from measurements of similar devices.
enum class Basis { measured, published, interpolated, guess };
inline constexpr std::array<std::string_view, 4> kBasisNames = {"measured", "published", "interpolated",
                                                                "guess"};
struct Sourced {
  double value = 0;
  Basis basis = Basis::guess;
  std::string source;
  double uncertainty = -1;  // standard deviation of ln(value); < 0: not given

  // `uncertainty`, or that of its basis.
  double deviation() const;
};
// Where a constant does not say how uncertain it is, by basis. Measured: calibrations repeat until their
// medians are known to 2 %. Published: half of the distance between two constants fitted on one table that
// predict it equally well (the A100's products, 0.78 and 0.86). Interpolated: by which the best products of
// A100, H100, GH200, B200, B300 and GB200 differ as shares of their peaks (standard deviation of their
// logarithms; stas00/ml-engineering compute/accelerator/README.md, bf16). Guess: twice as much as published.
inline constexpr std::array<double, 4> kDeviationOfBasis = {0.02, 0.05, 0.06, 0.10};

// {value = 0.8, basis = "published", source = "...", uncertainty = 0.04}; the value is multiplied by `unit`.
// An absent table gives 0; InputError if it is `required`.
Sourced read_sourced(Section& section, std::string_view key, Range range, double unit, bool required = false);

using ByPrecision = std::array<Sourced, kPrecisionNames.size()>;

// Shares of the peak that fused attention reaches, of the FLOPs that it computes; value 0: no such kernels.
struct FusedAttentionShares {
  Sourced forward, backward;
};

// How matrix products come in tiles, which is the library's doing, not the device's: the same for all
// devices, and in no device file. simulator/costs/product.cpp says how they enter.
struct ProductConstants {
  Sourced small_tiles;        // factor on the shares that tiles below the largest reach
  Sourced wave_quantisation;  // how much of the loss of a partly filled last wave shows
  ProductConstants();
};

struct Device {
  std::string name;        // "a100-80"
  std::string title;       // "NVIDIA A100 SXM 80GB"
  ByPrecision peak_flops;  // dense FLOP/s by Precision; 0: not supported
  Sourced memory_bytes;
  Sourced memory_bandwidth;  // bytes/s, nominal
  // Compute-time constants (simulator/costs/compute.hpp says how they enter):
  Sourced gemm_efficiency;  // share of the peak that long matrix products reach
  Sourced gemm_prologue_k;  // extra elements of k that a product costs: pipeline fill, epilogue
  Sourced convolution_efficiency;
  Sourced attention_efficiency;  // batched products of unfused attention
  Sourced memory_efficiency;     // share of memory_bandwidth that element-wise kernels reach
  Sourced kernel_overhead_s;     // gap between two kernels
  Sourced
      optimizer_bytes_per_parameter;  // moved by one mixed-precision Adam update; 0: counted from the states
  Sourced power_w, idle_power_w;      // while it computes, and while it waits; 0: not known
  // Where one precision reaches another share of its peak than the constants above say; value 0: it does not.
  ByPrecision gemm_efficiency_at, convolution_efficiency_at;
  // By AttentionKernels; none of unfused attention.
  std::array<FusedAttentionShares, kAttentionKernelsNames.size()> fused_attention;
  ProductConstants products;
  double compute_units = 0;  // SMs; 0: no wave quantisation
  double busy_units = 0;     // of these, what collectives leave no kernel (simulator/costs/interference.hpp)
  int compute_capability = 0;  // CUDA: 60 P100, 70 V100, 80 A100, 90 H100; 0: not a GPU

  double free_share() const { return compute_units > 0 ? 1 - busy_units / compute_units : 1; }
  bool has(AttentionKernels kernels) const;  // all have unfused ones
  const Sourced& gemm_efficiency_of(Precision p) const;
  const Sourced& convolution_efficiency_of(Precision p) const;
};

// devices are presets in topologies/presets/devices/NAME.toml
Device device_preset(const std::string& name);
// The keys of a device file, as the presets show and explain them; finishes the section.
Device read_device(Section& section);
std::vector<std::string> device_names();

}  // namespace rehearse
