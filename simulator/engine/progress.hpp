// How far a simulation has come: counted where it is simulated, read by the process that waits for it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

namespace rehearse {

enum class SimulationStage { network, ranks, run };
inline constexpr std::array<std::string_view, 3> kSimulationStageNames = {
    "laying out transfers", "finding ranks that are alike", "simulating"};

// Of one stage: transfers laid out; nothing (`total` is 0: the number of rounds is not known beforehand); ops
// that have ended and, at fidelity "chunk", messages that have arrived.
struct SimulationProgress {
  SimulationStage stage = SimulationStage::network;
  std::int64_t done = 0, total = 0;
};

// Called about ten times a second, in the process that waits for the simulation.
using WatchSimulation = std::function<void(const SimulationProgress&)>;

// Counts that children share which are forked while it lives. Each child that simulates takes one of its own.
class SharedProgress {
public:
  SharedProgress();  // RunError if there is no memory
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  ~SharedProgress();

  void count_here() const;  // in the child: what the simulation counts goes here
  SimulationProgress read() const;

private:
  struct Counts;
  Counts* counts_;
  friend void begin_stage(SimulationStage stage, std::int64_t total);
  friend void advance_stage(std::int64_t count);
};

// Called by the simulation; costs next to nothing and goes nowhere if nobody watches.
void begin_stage(SimulationStage stage, std::int64_t total);
void advance_stage(std::int64_t count = 1);

}  // namespace rehearse
