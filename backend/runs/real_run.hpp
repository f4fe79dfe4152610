// Runs a scenario on real ranks: each calls run_rank() with its transport, and rank 0 gets the result.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/loading/rate_queues.hpp"
#include "backend/runtime/hardware.hpp"
#include "backend/runtime/journal.hpp"
#include "backend/runtime/recorder.hpp"
#include "backend/runtime/transport.hpp"
#include "backend/training/arithmetic.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/strategy.hpp"

namespace rehearse {

// Ends the sampling of a rank's GPU and returns its record. Step i was between times i and i + 1 of this
// machine's monotonic clock.
using EndSampling = std::function<GpuRecord(const std::vector<double>& step_bounds_s)>;

// What an executor provides: arithmetic with a given number of streams, and hardware that uses it.
struct Executor {
  std::string name;  // "host", "cuda"
  // Arrays are fp32 in the process's memory, and issued work is already done.
  bool on_processors = true;
  // Computation is issued to the device and runs asynchronously, so each op is run once, for a temporary
  // workload, before anything is sent. The first launch of a kernel loads it, which may wait for all work on
  // the device; that work may in turn wait for something behind the launch (CUDA Programming Guide, "Lazy
  // Loading").
  bool rehearse = false;
  std::vector<std::string> notes;               // on the meaning of its runs' figures
  std::map<std::string, std::string> versions;  // of the libraries in use, {"NCCL", "2.28.9"}
  std::function<std::unique_ptr<Arithmetic>(int streams)> arithmetic;
  std::function<std::unique_ptr<Hardware>(const Schedule&, const Wiring&, int rank, Transport&, Workload&,
                                          Arithmetic&)>
      hardware;
  // Starts to sample the rank's GPU, once the hardware exists; null: there is no GPU.
  std::function<EndSampling(const Arithmetic&)> sample_gpu;
};

// The result of a run, which rank 0 gets.
struct RealRunResult {
  Trace trace;
  std::vector<RankReport> reports;  // by rank; their spans are in the trace
  std::vector<double> losses;       // by step, the mean over the batch; empty: not trained
  // Whether all ranks of each stage passed the same gradients to their optimizers in every step and ended
  // with the same weights, bit for bit; empty: that was not asked for, or there was nothing to compare.
  std::optional<bool> replicas_equal;
  // Ranks that hold the same layers but ended with different weights, which makes the run worthless: "ranks 0
  // and 2 ..."; empty: there are none.
  std::string replicas_differ;
  std::string not_trained;  // the reason; empty if it was trained
  std::string device;       // of rank 0
  std::string executor;     // the executor's name, notes and versions
  std::vector<std::string> notes;
  std::map<std::string, std::string> versions;
  double clock_error_s = 0;
};

struct CheckpointPlan;  // checkpoints.hpp

struct RealRunOptions {
  bool check_replicas = false;  // also compares the gradients of replicas of a stage, in every step
  Journal* journal = nullptr;   // of all ranks, for the process that started them; null: none
  // Where to continue, and where and how often to write checkpoints; null: neither. The steps of [run] are
  // those that are left.
  const CheckpointPlan* checkpoints = nullptr;
  // Queues of the storage, which all ranks share if one process started them; null: each rank has its own.
  RateQueues* queues = nullptr;
};

// What the ranks of a failed run had done, if all of them had finished a step.
struct UnfinishedRun {
  Trace trace;                      // of the finished steps only
  std::vector<RankReport> reports;  // without spans
  std::vector<double> losses;       // as in RealRunResult: the known ones of the finished steps
  std::string not_trained;
  int finished = 0, of = 0;  // steps of the schedule, or rounds, including the warm-up
};

// Throws InputError if the scenario offloads data from its devices, because real ranks store everything on
// them.
void refuse_offload(const Scenario& scenario);
// Throws InputError if samples come from servers on the fabric, or if the framework sends tensors in another
// size than they are stored in: both can only be predicted.
void refuse_what_is_only_predicted(const Scenario& scenario);

// Makes [run] count in repetitions of the schedule, rounded up, if that has several steps in a row so that
// batches are loaded in the same way whenever it repeats.
void count_in_repetitions(Scenario& scenario, const Schedule& schedule);

// Returns how often the schedule is repeated for the steps and the warm-up of [run].
int real_repeats(const Scenario& scenario, const Schedule& schedule);

// Runs this rank's part. Returns the result at rank 0, and nothing at the others. Throws RunError if the
// scenario needs another number of ranks, or if anything fails.
std::optional<RealRunResult> run_rank(const Scenario& scenario, const Plan& plan, Transport& transport,
                                      const Executor& executor, const RealRunOptions& options = {});

// Reads what the ranks, all on this machine, have left in the journal after they have ended. Returns nothing
// if no step was finished, or if rank 0 got the result of the complete run.
std::optional<UnfinishedRun> unfinished_run(const Scenario& scenario, const Plan& plan,
                                            const Journal& journal);

}  // namespace rehearse
