// Computes what the memory of each pipeline stage holds, at its peak and over time.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gui/models/runs/run.hpp"
#include "simulator/trace/memory_timeline.hpp"

namespace rehearse::gui {

inline constexpr std::array<std::string_view, 5> kMemoryParts = {"weights", "gradients", "optimizer state",
                                                                 "activations", "buffers"};
using BytesByPart = std::array<double, kMemoryParts.size()>;

// The fullest rank of a pipeline stage or of the servers.
struct StageMemory {
  std::string name;     // "stage 3"; if only the fullest device of the run is known, that device
  std::string rank;     // "stage 3, data 0-15 (16 ranks)"; empty: not known
  int rank_class = -1;  // in the trace; -1: not known
  bool server = false;  // runs on a host's processor, so no device capacity limits it
  BytesByPart parts{};
  double total = 0;
  // The classes and steps whose peaks are counted: of these ranks, and of a server on the same device.
  std::vector<std::pair<int, int>> peaks;
};

struct RunMemory {
  int run = 0;  // Run::id
  std::string name;
  std::vector<StageMemory> stages;
  int fullest = -1;     // index into `stages`, servers excluded; -1: none
  double capacity = 0;  // of a device; 0: not known
  bool fits = true;
  std::string sentence;  // "stage 0 is the fullest: 72.0 of 80.0 GiB", or why nothing is known
};
RunMemory memory_of(const Run& run);

// A step function: from time[i] on, a rank holds parts[p][i] bytes of part p.
struct MemorySeries {
  std::vector<Time> time;  // in the run's timeline, ascending
  std::array<std::vector<double>, kMemoryParts.size()> parts;
  double most = 0;                  // maximum of the total
  std::size_t at(Time when) const;  // last i with time[i] <= when; size() if there is none
};
MemorySeries memory_over_time(const Run& run, int rank_class);

BytesByPart by_part(const BytesByKind& kinds);
std::string memory_text(double bytes);  // "72.0 GiB", formatted as in the report

}  // namespace rehearse::gui
