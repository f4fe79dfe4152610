// The constants of a device, fitted to measured times of kernels by the simulator's own formulas.
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
  bool held_out = false;  // predicted, not fitted
};

// How well a constant, or several together, explain their kernels.
struct Residual {
  std::string name;                     // "gemm_efficiency"
  double value = 0, low = 0, high = 0;  // low and high: fitted to the quartiles instead of the medians
  int kernels = 0;
  double median = 0, worst = 0;  // of |predicted / measured - 1|
};

struct DeviceFit {
  Device device;
  std::vector<Residual> residuals;
  Residual held_out;  // kernels 0: none
};

// What was measured beside kernels; 0: not measured.
struct DeviceMeasures {
  double memory_bytes = 0;
  Sample triad;  // of `triad_bytes`
  double triad_bytes = 0;
  Sample overhead;  // of the smallest kernel among many of them
  Sample adam;      // one update in fp32 of `adam_parameters`
  double adam_parameters = 0;
};

// Each constant in turn, on the kernels that show it, with those before it held: memory_efficiency on memory
// kernels; gemm_efficiency and gemm_prologue_k together on products (of the precision with most samples, the
// others' efficiency then at its own); convolution_efficiency; attention_efficiency. What is minimised is
// Huber's loss of ln(predicted / measured), quadratic up to 10 %, by golden-section search, in turns where
// there are two. `base` keeps what it says of peaks, nominal bandwidth and memory; where it says nothing
// (value 0), the peak is the best rate of the precision's products, the bandwidth the triad's. `source`
// begins the source of every measured number. std::invalid_argument without products or without a triad.
DeviceFit fit_device(const Device& base, const std::vector<KernelSample>& kernels,
                     const DeviceMeasures& measures, const std::string& source);

}  // namespace rehearse
