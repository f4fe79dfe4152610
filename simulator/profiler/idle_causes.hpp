// Finds out what a GPU waits for while it idles, as far as the trace shows what its process does meanwhile.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "simulator/profiler/host_ops.hpp"

namespace rehearse {

enum class IdleCause {
  data,             // the process loads the next batch
  copies,           // copies of the next batch, or the process waits for a copy to begin
  synchronisation,  // the process had waited for the GPU, whose queue then was empty, and has issued nothing
                    // since
  operators,        // operators run on the processor before they launch the kernel
  python,           // the process runs what is no operator
  queue             // the kernel is launched and has not begun
};
inline constexpr std::size_t kIdleCauses = 6;
// For people, and as keys of JSON.
inline constexpr std::array<std::string_view, kIdleCauses> kIdleCauseNames = {
    "data loading",     "copies",
    "synchronisations", "operators on the processor",
    "Python",           "launched kernels that have not begun"};
inline constexpr std::array<std::string_view, kIdleCauses> kIdleCauseKeys = {
    "data_loading", "copies", "synchronisation", "operators", "python", "queue"};

// Idle time of one cause, in microseconds, and the part of it by name: "aten::embedding_bag",
// "cudaStreamSynchronize in aten::item".
struct IdleSum {
  double time = 0;
  std::map<std::string, double> by_name;
};
using IdleSums = std::array<IdleSum, kIdleCauses>;

// A kernel, and the host call that launched it.
struct PlacedKernel {
  Interval time;
  std::uint32_t thread = 0;
  double launched = 0;
  bool collective = false;
};

// What the threads of the process do, by time, as far as it concerns idle GPUs.
class HostActivity {
public:
  // `trace` and `ops` must outlive it.
  HostActivity(const ProfilerTrace& trace, const HostOps& ops);

  // Adds the time of `gap`, in which the GPU idles until `next` begins, to `sums`, by what the thread that
  // launches `next`, and the main thread, do. Returns the part in which they load data.
  double add_gap(Interval gap, const PlacedKernel& next, std::uint32_t main_thread, IdleSums& sums) const;

private:
  struct Call {
    Interval time;
    std::uint32_t name = 0;  // index into ProfilerTrace::names
  };
  using Calls = std::unordered_map<std::uint32_t, std::vector<Call>>;  // of each thread, by time

  class Gap;
  std::string name_of(const OuterOp& op) const;
  std::string emptied(std::uint32_t thread, double time) const;
  const ProfilerTrace& trace_;
  const HostOps& ops_;
  Calls loading_, waits_, copies_;
};

// Returns whether the call of the runtime or the driver of CUDA or HIP returns once the device has caught up.
bool waits_for_device(std::string_view call);

}  // namespace rehearse
