// Measures times of kernels on a device through its arithmetic.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/calibrate/fit_device.hpp"
#include "backend/training/arithmetic.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// Called as `what` is being measured and the share `done` of the planned time has passed.
using Progress = std::function<void(const std::string& what, double done)>;

struct ComputeMeasurements {
  DeviceMeasures measures;
  std::vector<KernelSample> kernels;
  double taken_off = 0;            // share of the time in which other programs had the processor
  std::vector<std::string> notes;  // on how the kernels were computed
  Sample issue;                    // the host's time to issue a kernel to a GPU; repeats 0: not a GPU
};

// Returns the precisions in which the device has arithmetic.
std::vector<Precision> precisions_of(Arithmetic& arithmetic);

// A kernel that a training computes.
struct TrainedKernel {
  Kernel kernel;
  Precision precision = Precision::fp32;
  double step_bytes = 0;  // that the training touches in a step
};

// Returns the different kernels of a schedule, each once; those of measured profiles are left out.
std::vector<TrainedKernel> trained_kernels(const Schedule& schedule);

// Measures the `trained` kernels first, with the caches as their training leaves them. Then measures
// products: square ones from 128 to 8,192; sums of all lengths (k from 16 to 8,192); tall and skinny ones, as
// in transformers and perceptrons; batched ones (attention); convolutions of ResNet-50 (as the equivalent
// products, if the device has no convolution algorithm); element-wise kernels from 1 MB on; and memory-bound
// kernels of all forms on rows, in and beyond the caches. Also measures y += x far beyond any cache, Adam's
// update, and the smallest kernel. Adapts the sizes to the device's speed: skips kernels of which a single
// run would take more than its share of `most_s`, the total seconds. Throws RunError if the device fails.
ComputeMeasurements measure_compute(Arithmetic& arithmetic, double most_s,
                                    const std::vector<TrainedKernel>& trained, const Progress& progress);

}  // namespace rehearse
