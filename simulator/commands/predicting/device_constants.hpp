// Lists the constants of a device that determine the predicted times of kernels.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "topologies/device.hpp"

namespace rehearse {

struct DeviceConstant {
  std::string key;  // as in a device file: "gemm_efficiency_at.fp8"; a description if it has no key
  std::function<Sourced&(Device&)> in;  // accesses the constant in any device
  bool less_is_better = false;

  bool uncertain(const Device& device) const;  // the device has it, with a deviation
  // Returns the device with the constant better by this factor for the time of kernels (below 1: worse).
  Device changed(Device device, double better) const;
};

// Excludes peaks and sizes from a data sheet, which are certain; the shares of them that are reached are
// included.
const std::vector<DeviceConstant>& device_constants();

}  // namespace rehearse
