// Reports the progress of a simulation: the simulating process counts, and the process that waits for it
// reads the counts.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

namespace rehearse {

enum class SimulationStage { network, ranks, run };
inline constexpr std::array<std::string_view, 3> kSimulationStageNames = {
    "laying out transfers", "finding equivalent ranks", "simulating"};

// Progress within one stage. `network` counts the members of the transfers that are laid out; `ranks` counts
// nothing (`total` is 0, since the number of rounds is not known in advance); `run` counts ops that have
// ended and, at fidelity "chunk", messages that have arrived.
struct SimulationProgress {
  SimulationStage stage = SimulationStage::network;
  std::int64_t done = 0, total = 0;
};

// Called about ten times per second, in the process that waits for the simulation.
using WatchSimulation = std::function<void(const SimulationProgress&)>;

// Counts that are shared with the children forked while the object exists. Each child that simulates needs a
// separate object.
class SharedProgress {
public:
  SharedProgress();  // throws RunError if there is no memory
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  ~SharedProgress();

  void count_here() const;  // in the child: directs the counts of the simulation to this object
  SimulationProgress read() const;

private:
  struct Counts;
  Counts* counts_;
  friend void begin_stage(SimulationStage stage, std::int64_t total);
  friend void advance_stage(std::int64_t count);
};

// Called by the simulation; they cost next to nothing, and have no effect if nobody watches.
void begin_stage(SimulationStage stage, std::int64_t total);
void advance_stage(std::int64_t count = 1);

}  // namespace rehearse
