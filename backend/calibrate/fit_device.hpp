// Fits the constants of a device to measured times of kernels, with the simulator's formulas.
#pragma once

#include <string>
#include <vector>

#include "backend/calibrate/sample.hpp"
#include "models/model.hpp"
#include "topologies/device.hpp"

namespace rehearse {

struct KernelSample {
  std::string what;  // "512 x 512 x 64"
  Kernel kernel;
  Precision precision = Precision::fp32;
  Sample time;
  // Held-out kernels test the fit. Listed ones are only among the measured kernels, because the constants
  // cannot explain them: operands stay in caches, or the kernel is not a copy.
  enum class Use { fitted, held_out, listed } use = Use::fitted;
};

// How well a constant, or several together, explain their kernels.
struct Residual {
  std::string name;                     // "gemm_efficiency"
  double value = 0, low = 0, high = 0;  // low and high: from quartiles, not medians
  int kernels = 0;
  double median = 0, worst = 0;  // of |predicted / measured - 1|
};

struct DeviceFit {
  Device device;
  std::vector<Residual> residuals;
  Residual held_out;  // kernels 0: none
};

// Measurements other than kernels; 0: not measured.
struct DeviceMeasures {
  double memory_bytes = 0;
  Sample triad;  // for `triad_bytes`
  double triad_bytes = 0;
  Sample overhead;  // of the smallest kernel, in a sequence of many
  Sample adam;      // one update in fp32 of `adam_parameters`
  double adam_parameters = 0;
};

// Fits the constants one after the other, each on the kernels that it affects, with the earlier ones fixed:
// memory_efficiency on memory kernels; gemm_efficiency and gemm_prologue_k together on products (of the
// precision with most samples; each other precision then gets a separate efficiency); convolution_efficiency;
// attention_efficiency. Minimizes Huber's loss of ln(predicted / measured), which is quadratic up to 10 %, by
// golden-section search, nested for two constants. Values that `base` has for peaks, nominal bandwidth and
// memory are retained; where it has none (value 0), the peak becomes the best rate of the precision's
// products, and the bandwidth that of the triad. All products, attention and memory kernels become the
// device's measured kernels; the held-out ones are predicted without themselves. The source of every measured
// number begins with `source`. Throws std::invalid_argument without products or without a triad.
DeviceFit fit_device(const Device& base, const std::vector<KernelSample>& kernels,
                     const DeviceMeasures& measures, const std::string& source);

}  // namespace rehearse
