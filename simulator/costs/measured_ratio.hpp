// Corrects the formula of a kernel's time by kernels that were measured on the device.
#pragma once

#include "topologies/device.hpp"

namespace rehearse {

// Returns the factor by which the measured kernels of the device correct the formula's time of `kernel`: 1
// without similar ones. Similar kernels are memory-bound ones of the same form, and products of the same
// kind, precision and transposed operand. The factor is the geometric mean of their ratios of measured time
// to formula, each weighted by 1 / d^4, where d is the Euclidean distance of the logarithms of the sizes (m,
// n, k and batch; bytes and width): inverse distance weighting (Shepard, "A two-dimensional interpolation
// function for irregularly-spaced data", 1968). The formula itself counts as a kernel at a distance of ln 16,
// so that it returns where nothing similar was measured.
double measured_ratio(const Kernel& kernel, const Device& device, Precision precision);

}  // namespace rehearse
