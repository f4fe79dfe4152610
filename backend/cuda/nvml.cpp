#include "backend/cuda/nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "backend/runtime/control.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

// Constants of the library's interface: NVML API Reference, "Device Enums" and "Device Queries".
constexpr int kSuccess = 0, kSmClock = 1, kMemoryClock = 2, kGpuTemperature = 0;

// Source: NVML API Reference, "NvmlClocksEventReasons".
constexpr std::uint64_t kIdle = 0x1;
constexpr std::array<std::pair<std::uint64_t, const char*>, 8> kReasons = {
    {{0x2, "application clocks"},
     {0x4, "power cap"},
     {0x8, "hardware slowdown"},
     {0x10, "sync boost"},
     {0x20, "software thermal slowdown"},
     {0x40, "hardware thermal slowdown"},
     {0x80, "power brake"},
     {0x100, "display clocks"}}};

}  // namespace

// NVML's functions; those that an older library lacks are null.
struct NvmlDevice::Library {
  struct Utilization {
    unsigned gpu = 0, memory = 0;  // percent of the last sampling period
  };
  void* handle = nullptr;
  bool started = false;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*find_device)(const char* pci_bus_id, void** device) = nullptr;
  int (*driver_version)(char* text, unsigned length) = nullptr;
  int (*clock)(void* device, int clock, unsigned* mhz) = nullptr;
  int (*power)(void* device, unsigned* milliwatts) = nullptr;
  int (*temperature)(void* device, int sensor, unsigned* celsius) = nullptr;
  int (*utilization)(void* device, Utilization* percent) = nullptr;
  int (*clock_reasons)(void* device, unsigned long long* bits) = nullptr;
  int (*energy)(void* device, unsigned long long* millijoules) = nullptr;

  Library() {
    constexpr const char* kName = "libnvidia-ml.so.1";
    handle = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw RunError(dlerror());
    find("nvmlInit_v2", init);
    find("nvmlShutdown", shutdown);
    find("nvmlErrorString", error_string);
    find("nvmlDeviceGetHandleByPciBusId_v2", find_device);
    find("nvmlSystemGetDriverVersion", driver_version);
    find("nvmlDeviceGetClockInfo", clock);
    find("nvmlDeviceGetPowerUsage", power);
    find("nvmlDeviceGetTemperature", temperature);
    find("nvmlDeviceGetUtilizationRates", utilization);
    find("nvmlDeviceGetCurrentClocksEventReasons", clock_reasons);  // since driver 535
    if (clock_reasons == nullptr) find("nvmlDeviceGetCurrentClocksThrottleReasons", clock_reasons);
    find("nvmlDeviceGetTotalEnergyConsumption", energy);  // GPUs from Volta on
    if (init == nullptr || shutdown == nullptr || error_string == nullptr || find_device == nullptr) {
      dlclose(handle);
      throw RunError(fmt::format("{} lacks functions of NVML", kName));
    }
  }
  ~Library() {
    if (started) (void)shutdown();
    dlclose(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  void check(int status, const char* call) const {
    if (status != kSuccess) throw RunError(fmt::format("{} failed: {}", call, error_string(status)));
  }

private:
  template <class Function>
  void find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(dlsym(handle, name));
  }
};

NvmlDevice::NvmlDevice(const std::string& pci_bus_id) : library_(std::make_unique<Library>()) {
  library_->check(library_->init(), "nvmlInit");
  library_->started = true;
  library_->check(library_->find_device(pci_bus_id.c_str(), &device_), "nvmlDeviceGetHandleByPciBusId");
}

NvmlDevice::~NvmlDevice() = default;

std::string NvmlDevice::driver() const {
  char text[80] = {};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
  const bool told =
      library_->driver_version != nullptr && library_->driver_version(text, sizeof text) == kSuccess;
  return told ? text : "";
}

GpuSample NvmlDevice::sample() const {
  const Library& nvml = *library_;
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const auto clock = [&](int which) {
    unsigned mhz = 0;
    return nvml.clock != nullptr && nvml.clock(device_, which, &mhz) == kSuccess ? mhz : kUnknown;
  };
  GpuSample sample;
  sample.time_s = monotonic_s();
  unsigned milliwatts = 0, celsius = 0;
  Library::Utilization percent;
  const bool power = nvml.power != nullptr && nvml.power(device_, &milliwatts) == kSuccess;
  const bool temperature =
      nvml.temperature != nullptr && nvml.temperature(device_, kGpuTemperature, &celsius) == kSuccess;
  const bool utilization = nvml.utilization != nullptr && nvml.utilization(device_, &percent) == kSuccess;
  sample.figures = {clock(kSmClock), clock(kMemoryClock), power ? 1e-3 * milliwatts : kUnknown,
                    temperature ? celsius : kUnknown, utilization ? percent.gpu : kUnknown};
  unsigned long long bits = 0;
  if (nvml.clock_reasons != nullptr && nvml.clock_reasons(device_, &bits) == kSuccess)
    sample.clock_reasons = bits;
  unsigned long long millijoules = 0;
  if (nvml.energy != nullptr && nvml.energy(device_, &millijoules) == kSuccess)
    sample.energy_j = 1e-3 * static_cast<double>(millijoules);
  return sample;
}

std::vector<std::string> throttle_names(std::uint64_t clock_reasons) {
  std::vector<std::string> names;
  std::uint64_t unnamed = clock_reasons & ~kIdle;
  for (const auto& [bit, name] : kReasons) {
    if ((clock_reasons & bit) != 0) names.emplace_back(name);
    unnamed &= ~bit;
  }
  if (unnamed != 0) names.push_back(fmt::format("reason {:#x}", unnamed));
  return names;
}

}  // namespace rehearse
