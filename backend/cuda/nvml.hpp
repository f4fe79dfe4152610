// What NVIDIA's management library (NVML) tells of a GPU. The library is loaded when it is asked for: nothing
// that we build needs it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/trace/gpu_record.hpp"

namespace rehearse {

struct GpuSample {
  double time_s = 0;  // this machine's monotonic clock
  // In the order of kSampledFigures; not a number: the GPU does not tell.
  std::array<double, kSampledFigures.size()> figures{};
  std::optional<std::uint64_t> clock_reasons;  // NVML's bits: why the clocks are not higher
  std::optional<double> energy_j;              // since the driver was loaded; nothing: no counter
};

class NvmlDevice {
public:
  // RunError if the library or the GPU is not there.
  explicit NvmlDevice(const std::string& pci_bus_id);
  ~NvmlDevice();
  NvmlDevice(const NvmlDevice&) = delete;
  NvmlDevice& operator=(const NvmlDevice&) = delete;

  std::string driver() const;  // NVIDIA's version, "550.54.15"; empty: not told
  GpuSample sample() const;    // by any one thread at a time

private:
  struct Library;
  std::unique_ptr<Library> library_;
  void* device_ = nullptr;
};

// The names of the reasons that hold clocks down; an idle GPU is not held down.
std::vector<std::string> throttle_names(std::uint64_t clock_reasons);

}  // namespace rehearse
