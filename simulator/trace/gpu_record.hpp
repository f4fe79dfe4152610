// Describes a rank's GPU in a measured run: identity, memory, and figures sampled in each step.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rehearse {

// Statistics over the samples of a step; NaN if the GPU does not report the figure.
struct SampledFigure {
  double mean = std::numeric_limits<double>::quiet_NaN();
  double least = std::numeric_limits<double>::quiet_NaN();
  double most = std::numeric_limits<double>::quiet_NaN();
};

struct GpuStep {
  int samples = 0;  // taken in the step; 0: the figures are those of the sample nearest to its middle
  SampledFigure sm_clock_mhz, memory_clock_mhz, power_w, temperature_c, utilization_percent;
  std::optional<std::vector<std::string>> throttled_by;        // in any sample: "power cap"; nullopt: unknown
  double energy_j = std::numeric_limits<double>::quiet_NaN();  // NaN: unknown
};

// The source of the energy of a rank's steps: the GPU's own energy counter, or mean power times the step's
// time.
enum class EnergyBasis { unknown, counter, power };
inline constexpr std::array<std::string_view, 3> kEnergyBasisNames = {"unknown", "counter", "power"};

inline constexpr std::array<std::pair<const char*, SampledFigure GpuStep::*>, 5> kSampledFigures = {
    {{"sm_clock_mhz", &GpuStep::sm_clock_mhz},
     {"memory_clock_mhz", &GpuStep::memory_clock_mhz},
     {"power_w", &GpuStep::power_w},
     {"temperature_c", &GpuStep::temperature_c},
     {"utilization_percent", &GpuStep::utilization_percent}}};

// What NCCL chose for the collectives of an op.
struct ChosenCollective {
  int op = -1;                      // in the rank's program
  std::string name, kind;           // the op's name; "all-reduce"
  double bytes = 0;                 // of its buffer
  std::string algorithm, protocol;  // in NCCL's terms: "RING", "LL128"
  int channels = 0;                 // at most
  std::int64_t calls = 0;           // number of calls with these values
};

// A rank's GPU and its figures. Unknown byte counts are 0.
struct GpuRecord {
  std::string uuid;            // as nvidia-smi prints it; empty: the rank had no GPU
  std::string pci_bus_id;      // "0000:1b:00.0"
  std::string driver;          // NVIDIA's, "550.54.15"; empty: unknown
  double allocated_bytes = 0;  // by the rank's own arithmetic, at its peak
  // The rank's predicted peak; a worker's includes that of a server on its device. 0: nothing was trained.
  double predicted_bytes = 0;
  // Memory used by all processes on the device, including CUDA's own context, before and after the rank
  // created its communicators.
  double used_before_communicators_bytes = 0, used_after_communicators_bytes = 0;
  std::string clocks_unknown;  // why nothing was sampled; empty: it was
  std::vector<GpuStep> steps;  // by step, including the warm-up
  EnergyBasis energy_basis = EnergyBasis::unknown;
  std::vector<ChosenCollective> collectives;  // empty: NCCL was not asked, or did not report them
};

// Returns the peak allocation of the worker that allocated the most, including a server on its device; 0 if
// nothing was trained. `ranks` and `endpoints`: by rank over all roles, the workers first.
double fullest_worker_bytes(const std::vector<GpuRecord>& ranks, const std::vector<int>& endpoints,
                            int workers);

}  // namespace rehearse
