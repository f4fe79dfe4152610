// A scenario carried out by real ranks: each calls run_rank() with its transport, and rank 0 gets what came
// of it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/runtime/hardware.hpp"
#include "backend/runtime/journal.hpp"
#include "backend/runtime/recorder.hpp"
#include "backend/runtime/transport.hpp"
#include "backend/training/arithmetic.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/strategy.hpp"

namespace rehearse {

// Ends the sampling of a rank's GPU and tells what it was and did. Step i lay between times i and i + 1 of
// this machine's monotonic clock.
using EndSampling = std::function<GpuRecord(const std::vector<double>& step_bounds_s)>;

// What an executor provides: arithmetic with so many streams, and hardware over it.
struct Executor {
  std::string name;  // "host", "cuda"
  // Arrays lie in the process's memory, all in fp32, and what is issued has been done.
  bool on_processors = true;
  // Computation is issued to the device and runs on by itself: each op is carried out once, for a workload
  // that is thrown away, before anything is sent. The first launch of a kernel loads it, which may wait for
  // all that the device is doing, and what waits there may wait for what is behind the launch (CUDA
  // Programming Guide, "Lazy Loading").
  bool rehearse = false;
  std::vector<std::string> notes;               // on what the figures of its runs mean
  std::map<std::string, std::string> versions;  // of the libraries it runs on, {"NCCL", "2.28.9"}
  std::function<std::unique_ptr<Arithmetic>(int streams)> arithmetic;
  std::function<std::unique_ptr<Hardware>(const Schedule&, const Wiring&, int rank, Transport&, Workload&,
                                          Arithmetic&)>
      hardware;
  // Begins to sample the rank's GPU, once the hardware is there; null: it has none.
  std::function<EndSampling(const Arithmetic&)> sample_gpu;
};

// What rank 0 knows in the end.
struct RealRunResult {
  Trace trace;
  std::vector<RankReport> reports;  // by rank; their spans are in the trace
  std::vector<double> losses;       // of each step, the mean over the batch; empty: not trained
  // Whether all ranks of each stage gave their optimizers the same gradients in every step, and ended with
  // the same weights, bit for bit; empty: there was nothing to compare.
  std::optional<bool> replicas_equal;
  std::string not_trained;  // why it was not; empty if it was
  std::string device;       // of rank 0
  std::string executor;     // its name, its notes and its versions
  std::vector<std::string> notes;
  std::map<std::string, std::string> versions;
  double clock_error_s = 0;
};

struct RealRunOptions {
  bool check_replicas = false;  // compare what replicas of a stage learn, bit for bit
  Journal* journal = nullptr;   // of all ranks, for who started them; null: none is kept
};

// What the ranks of a run that failed had done, if all of them had finished a step.
struct UnfinishedRun {
  Trace trace;                      // of the finished steps alone
  std::vector<RankReport> reports;  // without spans
  std::vector<double> losses;       // as in a RealRunResult: those that are known of the finished steps
  std::string not_trained;
  int finished = 0, of = 0;  // steps of the schedule, or rounds, the warm-up's among them
};

// InputError if the scenario keeps something off its devices: real ranks hold all of their own.
void refuse_offload(const Scenario& scenario);
// InputError if the framework sends tensors in another size than they are stored in, which is predicted only.
void refuse_simulated_sizes(const Scenario& scenario);

// How often the schedule is repeated for [run] steps and warmup.
int real_repeats(const Scenario& scenario, const Schedule& schedule);

// Carries out this rank's part. RunError if the scenario needs another number of ranks, or if anything fails.
// The result is for rank 0; others get none.
std::optional<RealRunResult> run_rank(const Scenario& scenario, const Plan& plan, Transport& transport,
                                      const Executor& executor, const RealRunOptions& options = {});

// From what they have left, after they have ended; nothing if no step was finished, or if rank 0 got the
// result of the whole run. All ranks ran on this machine.
std::optional<UnfinishedRun> unfinished_run(const Scenario& scenario, const Plan& plan,
                                            const Journal& journal);

}  // namespace rehearse
