#include "simulator/costs/memory.hpp"

#include <algorithm>

namespace rehearse {
namespace {

// Section 3.1 of Rajbhandari, Rasley, Ruwase, He, "ZeRO: Memory Optimizations Toward Training Trillion
// Parameter Models" (SC 2020): mixed-precision Adam stores 2 + 2 + 12 bytes per parameter, where the 12 are
// master weights and two moments.
constexpr double kMasterBytes = 4, kMomentBytes = 4;

bool mixed(Precision p) {
  return element_bytes(p) < 4;
}

double moments(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adam:
      return 2;
    case Optimizer::momentum:
      return 1;
    case Optimizer::sgd:
      return 0;
  }
  return 0;
}

}  // namespace

StateBytes state_bytes(Optimizer optimizer, Precision precision, Precision gradient) {
  StateBytes bytes;
  bytes.weight = element_bytes(precision);
  bytes.gradient = std::max(bytes.weight, element_bytes(gradient));
  bytes.optimizer = moments(optimizer) * kMomentBytes + (mixed(precision) ? kMasterBytes : 0);
  return bytes;
}

double update_bytes(Optimizer optimizer, Precision precision, Precision gradient) {
  const StateBytes bytes = state_bytes(optimizer, precision, gradient);
  // The state is read and written and the gradient is read. The weight is written; it is read, too, unless a
  // master copy is read instead.
  return bytes.gradient + 2 * bytes.optimizer + (mixed(precision) ? 1 : 2) * bytes.weight;
}

}  // namespace rehearse
