#include "simulator/costs/measured_ratio.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse {
namespace {

constexpr double kFormulaDistance = 2.772588722239781;  // ln 16
constexpr double kSameDistance = 1e-3;                  // closer kernels are the same one

bool similar(const MeasuredKernel& measured, const Kernel& kernel, Precision precision) {
  const Kernel& other = measured.kernel;
  if (kernel.kind != other.kind) return false;
  if (kernel.kind == Kernel::Kind::memory) return kernel.form == other.form;
  return kernel.transposed == other.transposed && measured.precision == precision;
}

// Returns the square of the difference of the logarithms.
double apart(double one, double other) {
  const double difference = std::log(std::max(one, 1.0) / std::max(other, 1.0));
  return difference * difference;
}

double squared_distance(const Kernel& one, const Kernel& other) {
  if (one.kind == Kernel::Kind::memory) return apart(one.bytes, other.bytes) + apart(one.width, other.width);
  return apart(one.m, other.m) + apart(one.n, other.n) + apart(one.k, other.k) +
         apart(one.batch, other.batch);
}

double weight(double squared) {
  return 1 / (squared * squared);
}

}  // namespace

double measured_ratio(const Kernel& kernel, const Device& device, Precision precision) {
  if (!device.measured) return 1;
  double sum = 0, weights = weight(kFormulaDistance * kFormulaDistance);
  for (const MeasuredKernel& measured : device.measured->all) {
    if (!similar(measured, kernel, precision)) continue;
    const double w =
        weight(std::max(squared_distance(measured.kernel, kernel), kSameDistance * kSameDistance));
    sum += w * std::log(measured.seconds / measured.formula_s);
    weights += w;
  }
  return std::exp(sum / weights);
}

}  // namespace rehearse
