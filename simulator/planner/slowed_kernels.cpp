#include "simulator/planner/slowed_kernels.hpp"

#include <algorithm>

#include "simulator/costs/compute.hpp"

namespace rehearse {

SlowedKernels slowed_kernels(const ModelTimes& model, const Device& device, Precision precision,
                             const DeviceLoad& load) {
  const Device beside = device_beside(device, load);
  SlowedKernels slowed;
  for (const KernelShare& kernel : model.kernels) {
    const double alone_s = kernel_time_s(kernel.one, device, precision);
    if (alone_s <= 0) continue;
    slowed.shares.push_back(
        {std::max(1.0, kernel_time_s(kernel.one, beside, precision) / alone_s), kernel.seconds});
    slowed.seconds += kernel.seconds;
  }
  std::sort(slowed.shares.begin(), slowed.shares.end(),
            [](const SlowedKernels::Share& a, const SlowedKernels::Share& b) { return a.slower < b.slower; });
  return slowed;
}

double SlowedKernels::more_s(double own_s, double beside_s) const {
  if (seconds <= 0 || own_s <= 0) return 0;
  double more = 0, left_s = beside_s;
  for (const Share& share : shares) {
    const double here_s = std::min(left_s, share.seconds / seconds * own_s * share.slower);
    more += here_s * (1 - 1 / share.slower);
    left_s -= here_s;
    if (left_s <= 0) break;
  }
  return more;
}

}  // namespace rehearse
