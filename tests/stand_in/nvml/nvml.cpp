// A stand-in for NVIDIA's management library: its figures are functions of the number of the GPU's PCI bus.
// NVML_STAND_IN_REASONS gives the reasons why clocks are throttled as NVML's bits (0x1: idle).
// NVML_STAND_IN_FAULT names the function that fails.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

// Values from NVML API Reference, "nvmlReturn_t".
constexpr int kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6;

bool fails(const char* function) {
  const char* fault = std::getenv("NVML_STAND_IN_FAULT");
  return fault != nullptr && std::strcmp(fault, function) == 0;
}

// A device handle is the number of its PCI bus.
unsigned bus_of(void* device) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device));
}

int tell(const char* function, unsigned value, unsigned* told) {
  if (fails(function)) return kNotSupported;
  *told = value;
  return kSuccess;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  return fails("nvmlInit") ? kNotSupported : kSuccess;
}

int nvmlShutdown() {
  return kSuccess;
}

const char* nvmlErrorString(int status) {
  return status == kNotFound          ? "Not Found"
         : status == kInvalidArgument ? "Invalid Argument"
                                      : "Not Supported";
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* pci_bus_id, void** device) {
  unsigned domain = 0, bus = 0;
  if (std::sscanf(pci_bus_id, "%x:%x", &domain, &bus) != 2) return kInvalidArgument;
  if (bus == 0) return kNotFound;
  *device = reinterpret_cast<void*>(static_cast<std::uintptr_t>(bus));  // NOLINT(performance-no-int-to-ptr)
  return kSuccess;
}

int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::snprintf(text, length, "550.54.15");
  return kSuccess;
}

int nvmlDeviceGetClockInfo(void* device, int clock, unsigned* mhz) {
  constexpr int kSm = 1, kMemory = 2;  // "nvmlClockType_t"
  if (clock != kSm && clock != kMemory) return kInvalidArgument;
  return tell("nvmlDeviceGetClockInfo", (clock == kSm ? 1900 : 2600) + 10 * bus_of(device), mhz);
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  return tell("nvmlDeviceGetPowerUsage", 400000 + 2000 * bus_of(device), milliwatts);
}

// Returns an energy counter that grows by 1,000 J a second times the bus number and starts at an arbitrary
// value.
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (fails("nvmlDeviceGetTotalEnergyConsumption")) return kNotSupported;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto microseconds = static_cast<unsigned long long>(now.tv_sec) * 1000000 +
                            static_cast<unsigned long long>(now.tv_nsec) / 1000;
  *millijoules = bus_of(device) * microseconds;
  return kSuccess;
}

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  if (sensor != 0) return kInvalidArgument;
  return tell("nvmlDeviceGetTemperature", 50 + 2 * bus_of(device), celsius);
}

int nvmlDeviceGetUtilizationRates(void* device, unsigned* percent) {
  percent[1] = 0;
  return tell("nvmlDeviceGetUtilizationRates", 90 + bus_of(device), percent);
}

int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* bits) {
  const char* reasons = std::getenv("NVML_STAND_IN_REASONS");
  *bits = reasons == nullptr ? 0 : std::strtoull(reasons, nullptr, 0);
  return kSuccess;
}

}  // extern "C"
