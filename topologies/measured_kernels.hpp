// Lists kernels whose times were measured on a device, beside the times that the device's constants give for
// them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/kernel.hpp"
#include "models/precision.hpp"
#include "models/text/document.hpp"

namespace rehearse {

// A kernel that takes `seconds`, where the constants of the same device file give `formula_s`; both include
// the kernel's overhead. simulator/costs/measured_ratio.hpp describes how their ratio corrects the times of
// similar kernels.
struct MeasuredKernel {
  Kernel kernel;  // of kind gemm, attention or memory
  Precision precision = Precision::fp32;
  double seconds = 0, formula_s = 0;
};

struct MeasuredKernels {
  std::vector<MeasuredKernel> all;
  std::string source;  // what measured them
};

// Reads the keys `measured_kernels` (an array of tables) and `measured_kernels_source` of a device file:
//   {kind = "gemm", m = 64, n = 256, k = 512, transposed = "b", us = 95.2, formula_us = 88.1}
//   {kind = "attention", m = 128, n = 128, k = 64, batch = 32, us = ..., formula_us = ...}
//   {kind = "memory", form = "norm-forward", bytes = 2e6, width = 256, reads = 1, writes = 1, us = ...,
//   formula_us = ...}
// each in fp32 unless `precision` is given. Returns null without rows. Throws InputError.
std::shared_ptr<const MeasuredKernels> read_measured_kernels(Section& device);

// Returns these keys as TOML; empty without rows.
std::string measured_kernels_text(const MeasuredKernels& kernels);

}  // namespace rehearse
