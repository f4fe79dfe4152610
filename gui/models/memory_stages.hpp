// What the memory of each stage holds: at its fullest, and as time goes by.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/run.hpp"
#include "simulator/trace/memory_timeline.hpp"

namespace rehearse::gui {

inline constexpr std::array<std::string_view, 5> kMemoryParts = {"weights", "gradients", "optimizer state",
                                                                 "activations", "buffers"};
using BytesByPart = std::array<double, kMemoryParts.size()>;

// The fullest rank of a stage, or of the servers.
struct StageMemory {
  std::string name;     // "stage 3"; of a run of which only the fullest is known, that one
  std::string rank;     // "stage 3, data 0-15 (16 ranks)"; empty: not known
  int rank_class = -1;  // of the trace; -1: not known
  bool server = false;  // on a processor: no device's capacity bounds it
  BytesByPart parts{};
  double total = 0;
};

struct RunMemory {
  int run = 0;  // Run::id
  std::string name;
  std::vector<StageMemory> stages;
  int fullest = -1;     // of the stages on devices
  double capacity = 0;  // of a device; 0: not known
  bool fits = true;
  std::string sentence;  // "stage 0 is the fullest: 72.0 of 80.0 GiB"; or why nothing is known
};
RunMemory memory_of(const Run& run);

// Steps: after time[i] a rank holds parts[p][i] of part p.
struct MemorySeries {
  std::vector<Time> time;  // of the run's timeline, ascending
  std::array<std::vector<double>, kMemoryParts.size()> parts;
  double most = 0;                  // of all parts together
  std::size_t at(Time when) const;  // the last i with time[i] <= when; size() if there is none
};
MemorySeries memory_over_time(const Run& run, int rank_class);

BytesByPart by_part(const BytesByKind& kinds);
std::string memory_text(double bytes);  // "72.0 GiB", as the report has it

}  // namespace rehearse::gui
