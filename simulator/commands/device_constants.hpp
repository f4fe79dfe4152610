// The constants of a device by which the time of kernels is predicted, one by one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "topologies/device.hpp"

namespace rehearse {

struct DeviceConstant {
  std::string key;  // as in a device file: "gemm_efficiency_at.fp8"; in words for those that are in none
  std::function<Sourced&(Device&)> in;  // access to it in any device
  bool less_is_better = false;

  bool uncertain(const Device& device) const;  // it is given there and has a deviation
  // The device with the constant so many times better for the time of kernels (below 1: worse).
  Device changed(Device device, double better) const;
};

// Peaks and sizes of a data sheet are certain, and not among them: what is reached of them is.
const std::vector<DeviceConstant>& device_constants();

}  // namespace rehearse
