// Samples a GPU with NVIDIA's management library (NVML). The library is loaded at run time, so that our
// programs run without it.
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
  // In the order of kSampledFigures; NaN: the GPU does not report it.
  std::array<double, kSampledFigures.size()> figures{};
  std::optional<std::uint64_t> clock_reasons;  // NVML's bits for the reasons that limit the clocks
  std::optional<double> energy_j;              // since the driver was loaded; nullopt: no counter
};

class NvmlDevice {
public:
  // Throws RunError if the library or the GPU is missing.
  explicit NvmlDevice(const std::string& pci_bus_id);
  ~NvmlDevice();
  NvmlDevice(const NvmlDevice&) = delete;
  NvmlDevice& operator=(const NvmlDevice&) = delete;

  std::string driver() const;  // NVIDIA's version, "550.54.15"; empty: unknown
  GpuSample sample() const;    // at most one thread at a time may call it

private:
  struct Library;
  std::unique_ptr<Library> library_;
  void* device_ = nullptr;
};

// Returns the names of the reasons that limit the clocks; idleness does not count as one.
std::vector<std::string> throttle_names(std::uint64_t clock_reasons);

}  // namespace rehearse
