// Times of kernels on a device, measured through its arithmetic.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/calibrate/fit_device.hpp"
#include "backend/training/arithmetic.hpp"

namespace rehearse {

// Told of what is done: `what` is being measured, after the share `done` of the time that is planned.
using Progress = std::function<void(const std::string& what, double done)>;

struct ComputeMeasurements {
  DeviceMeasures measures;
  std::vector<KernelSample> kernels;
  double taken_off = 0;            // share of the time that other programs had the processor
  std::vector<std::string> notes;  // on what carried the kernels out
  Sample issue;  // of a kernel to a GPU by the host; repeats 0: a processor computes at once
};

// Of the precisions, those in which the device has arithmetic.
std::vector<Precision> precisions_of(Arithmetic& arithmetic);

// Products: square from 128 to 8,192, sums of every length (k from 16 to 8,192), tall and skinny, as
// transformers and perceptrons have them, batched (attention), convolutions of ResNet-50 (where the device
// has no algorithm of its own for them, the equal products), element-wise kernels from 1 MB on; y += x far
// beyond any cache, the update of Adam, and the smallest kernel. Every size in proportion to how fast the
// device is: none is measured of which one run would take more than its share of `most_s`, the seconds for
// all. RunError if the device fails.
ComputeMeasurements measure_compute(Arithmetic& arithmetic, double most_s, const Progress& progress);

}  // namespace rehearse
