// Computes the figures of a run: step time and its breakdown, memory, network. "What the figures mean" of
// simulator/commands/README.md defines them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/trace/asynchrony.hpp"
#include "simulator/trace/checkpoint_cost.hpp"
#include "simulator/trace/step_traffic.hpp"
#include "simulator/trace/trace.hpp"

namespace rehearse {

// Means over devices; each point in time counts once, so the parts add up to the step.
struct Breakdown {
  double compute_s = 0;
  double exposed_communication_s = 0;  // all sides of the awaited transfer are ready
  double data_stall_s = 0;
  double pipeline_bubble_s = 0;  // a pipeline peer is not ready
  double other_s = 0;
  double launches_s = 0;    // part of other_s: kernels that their process has not issued yet
  double process_s = 0;     // part of other_s: waits for the process that a profile measured (Kernel::wait_s)
  double checkpoint_s = 0;  // part of other_s: a step's share of the stall of a checkpoint
  double slowed_s = 0;      // part of compute_s: delay by concurrent collectives
  double total_s() const {
    return compute_s + exposed_communication_s + data_stall_s + pipeline_bubble_s + other_s;
  }
  // The part of other_s that other ranks, or what they send, cause.
  double waiting_s() const { return other_s - launches_s - process_s - checkpoint_s; }
  std::map<Purpose, double> exposed_s;  // exposed_communication_s by purpose of the awaited op
  void scale(double factor) {
    for (double* s : {&compute_s, &exposed_communication_s, &data_stall_s, &pipeline_bubble_s, &other_s,
                      &launches_s, &process_s, &checkpoint_s, &slowed_s})
      *s *= factor;
    for (auto& [purpose, s] : exposed_s) s *= factor;
  }
};

// The names of Breakdown::slowed_s, Breakdown::process_s and Breakdown::checkpoint_s.
inline constexpr const char* kSlowedCompute = "compute slowed by collectives";
inline constexpr const char* kProfiledWait = "waiting for the process";
inline constexpr const char* kCheckpointStall = "waiting for checkpoints";

// Peak bytes of one device, by tensor kind; `fullest` names the program of the worker that needs most.
struct MemoryUse {
  double weights = 0, gradients = 0, optimizer = 0, activations = 0, buffers = 0, total = 0, capacity = 0;
  bool fits = true;
  std::string fullest;  // "stage 1"
};

// Memory off the devices: peak bytes in the memory of the node that holds most, by tensor kind, and on the
// NVMe of the node that holds most there. `capacity` 0: unknown.
struct HostMemoryUse {
  double weights = 0, gradients = 0, optimizer = 0, buffers = 0, total = 0, capacity = 0;
  double nvme = 0;
  bool fits = true;
  std::string fullest;  // "node0"
};

// The times of steps that differ by chance: quantiles in seconds.
struct StepDistribution {
  int steps = 0;
  double least_s = 0, low_s = 0, median_s = 0, high_s = 0,
         most_s = 0;  // low and high: 5 and 95 % are shorter
};

struct Metrics {
  double step_time_s = 0;
  double samples = 0;  // trained in the schedule, which may have several optimizer steps
  double samples_per_s = 0;
  double tokens_per_s = 0;  // 0: the model has no tokens
  int devices = 0;
  double model_tflops_per_device = 0, mfu = 0, hfu = 0;
  Breakdown breakdown;
  MemoryUse memory;
  std::optional<HostMemoryUse> host_memory;  // if anything is stored off the devices
  double network_bytes_per_step = 0;
  std::string busiest_link;  // empty: no link was used
  LinkPlace busiest_place;   // of that link
  double busiest_utilization = 0;
  std::optional<AsynchronyFigures> asynchrony;   // of workers that do not wait for each other
  std::optional<CheckpointCost> checkpoint;      // if the scenario writes any; step_time_s has its share
  std::optional<StepDistribution> distribution;  // if steps differ by chance; then step_time_s is their mean
};

// Computes the figures of the last step of job 0; for a round of several optimizer steps, of a step's share.
// Throws RunError if the job failed. Asynchronous workers have no common step: for them it is the time in
// which all of them together train the samples of a step.
Metrics evaluate(const Trace& trace, const Scenario& scenario, const Plan& plan);

// Sets the bytes that job 0 puts on the network in a step, and the busiest link, from metrics.step_time_s and
// a step's traffic.
void set_traffic(Metrics& metrics, const StepTraffic& traffic, const Cluster& cluster);

// Returns the breakdown of the last step of one job, mean over the ranks of role "worker". For asynchronous
// workers: of each worker's rounds in the window, scaled so that it also adds up to the step.
Breakdown break_down(const Trace& trace, int job);
// The same for a step that has `repeats` times what the longer trace has more than the shorter one.
Breakdown break_down(const Trace& shorter, const Trace& longer, double repeats);
// The beginning of the last step of a job (the end of the step before, or 0) and its end; for asynchronous
// workers, the window in which they are measured.
struct StepWindow {
  double begin_s = 0, end_s = 0;
};
StepWindow last_step(const Trace& trace, int job);
// Returns the peak memory of the fullest worker device, from the lifetimes of its tensors and of those of a
// server on it.
MemoryUse memory_use(const Trace& trace, int job, double capacity_bytes);
// The same for the nodes' own memory; sums the peaks of a node's ranks, which need not occur at the same
// time.
// `factor`: Framework::host_memory_factor.
HostMemoryUse host_memory_use(const Trace& trace, int job, const Cluster& cluster, double factor = 0);

}  // namespace rehearse
