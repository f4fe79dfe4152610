// Describes a device: peaks, memory and the few constants that predict compute time, each with its source.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "models/kernel.hpp"
#include "models/precision.hpp"
#include "models/text/document.hpp"
#include "topologies/measured_kernels.hpp"

namespace rehearse {

// The basis of a number. `interpolated`: copied or scaled from measurements of similar devices.
enum class Basis { measured, published, interpolated, guess };
inline constexpr std::array<std::string_view, 4> kBasisNames = {"measured", "published", "interpolated",
                                                                "guess"};
struct Sourced {
  double value = 0;
  Basis basis = Basis::guess;
  std::string source;
  double uncertainty = -1;  // standard deviation of ln(value); < 0: not given

  // Returns `uncertainty`, or the default of its basis.
  double deviation() const;
};
// Default uncertainties by basis. Measured: calibrations repeat until their medians are known to 2 %.
// Published: half the distance between two constants fitted on one table that predict it equally well (the
// A100's products, 0.78 and 0.86). Interpolated: the spread of the best products of A100, H100, GH200, B200,
// B300 and GB200 as shares of their peaks (standard deviation of their logarithms; stas00/ml-engineering
// compute/accelerator/README.md, bf16). Guess: twice as much as published.
inline constexpr std::array<double, 4> kDeviationOfBasis = {0.02, 0.05, 0.06, 0.10};

// Reads {value = 0.8, basis = "published", source = "...", uncertainty = 0.04} and multiplies the value by
// `unit`. A plain number is a guess. An absent key gives 0, or throws InputError if it is `required`.
Sourced read_sourced(Section& section, std::string_view key, Range range, double unit, bool required = false);

using ByPrecision = std::array<Sourced, kPrecisionNames.size()>;

// Shares of the peak that fused attention reaches with the FLOPs it computes; value 0: no such kernels.
struct FusedAttentionShares {
  Sourced forward, backward;
};

// Constants for dividing matrix products into tiles. They are properties of the library, not of the device:
// the same for all devices, and not part of device files. simulator/costs/product.cpp describes how they are
// used.
struct ProductConstants {
  Sourced small_tiles;        // factor on the shares that tiles smaller than the largest reach
  Sourced wave_quantisation;  // share of the loss from a partly filled last wave that is visible
  ProductConstants();
};

struct Device {
  std::string name;        // e.g. "a100-80"
  std::string title;       // e.g. "NVIDIA A100 SXM 80GB"
  ByPrecision peak_flops;  // dense FLOP/s by Precision; 0: not supported
  Sourced memory_bytes;
  Sourced memory_bandwidth;  // bytes/s, nominal
  // Compute-time constants (simulator/costs/compute.hpp describes how they are used):
  Sourced gemm_efficiency;  // share of the peak that long matrix products reach
  Sourced gemm_prologue_k;  // additional elements of k that a product costs: pipeline fill, epilogue
  Sourced convolution_efficiency;
  Sourced attention_efficiency;  // for batched products of unfused attention
  Sourced memory_efficiency;     // share of memory_bandwidth that element-wise kernels reach
  Sourced kernel_overhead_s;     // gap between two kernels
  // Bytes moved by one mixed-precision Adam update; 0: computed from the states.
  Sourced optimizer_bytes_per_parameter;
  Sourced power_w, idle_power_w;  // while it computes, and while it waits; 0: not known
  // For precisions that reach a different share of their peak than the constants above; value 0: no
  // difference.
  ByPrecision gemm_efficiency_at, convolution_efficiency_at;
  // By AttentionKernels; the entry for unfused attention is not used.
  std::array<FusedAttentionShares, kAttentionKernelsNames.size()> fused_attention;
  std::shared_ptr<const MeasuredKernels> measured;  // null: none; correct the times that the constants give
  ProductConstants products;
  double compute_units = 0;  // SMs; 0: no wave quantization
  double busy_units = 0;     // SMs that collectives take away from kernels (simulator/costs/interference.hpp)
  int compute_capability = 0;  // CUDA: 60 P100, 70 V100, 80 A100, 90 H100; 0: not a GPU
  bool peer_to_peer = true;    // copies over PCIe go from device to device, not through host memory

  // Here they are only declared: many sources copy it, and each would compile the copy again.
  Device();
  Device(const Device&);
  Device(Device&&) noexcept;
  Device& operator=(const Device&);
  Device& operator=(Device&&) noexcept;
  ~Device();

  double free_share() const { return compute_units > 0 ? 1 - busy_units / compute_units : 1; }
  bool has(AttentionKernels kernels) const;  // all devices have unfused ones
  const Sourced& gemm_efficiency_of(Precision p) const;
  const Sourced& convolution_efficiency_of(Precision p) const;
};

// Devices are presets in topologies/presets/devices/NAME.toml.
Device device_preset(const std::string& name);
// Reads the keys of a device file, which the presets explain, and finishes the section.
Device read_device(Section& section);
std::vector<std::string> device_names();

}  // namespace rehearse
