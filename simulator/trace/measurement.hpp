// What a measured trace needs besides its spans, and its figures: those of its median step.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulator/trace/critical_path.hpp"
#include "simulator/trace/gpu_record.hpp"
#include "simulator/trace/metrics.hpp"

namespace rehearse {

// A run that failed; its trace holds the steps that all ranks had finished.
struct EndedEarly {
  int finished_steps = 0, steps = 0;  // of the schedule, those of the warm-up among them
  std::string cause;                  // "rank 2 was ended by signal 9 (Killed)"
};

// How a run came about. Text that is not known is empty, numbers are 0.
struct Measurement {
  std::string executor;   // "host", "cuda", "emulated"
  std::string transport;  // "TCP", "Open MPI 4.1.4", "NCCL 2.19.3"
  std::string processor;  // "Intel Xeon Platinum 8481C"
  int cores = 0;          // of one host, which the ranks there could use
  std::string gpu;        // "NVIDIA H200"
  int gpus = 0;           // of one host
  int hosts = 1;
  std::map<std::string, std::string> versions;  // {"rehearse-run", "1.0"}, {"CUDA", "12.4"}
  std::string date;                             // ISO 8601, UTC: "2025-11-21T10:04:00Z"
  std::string command;                          // that made the run
  RealRun::Compute compute = RealRun::Compute::real;
  int warmup_steps = 0;                     // the trace's first steps, which no figure is taken from
  std::vector<double> losses;               // by step, those of the warm-up too; empty: not known
  std::optional<bool> gradients_identical;  // synchronised gradients were the same bits on all their ranks
  std::vector<std::string> notes;           // "8 ranks on 2 cores", what else is peculiar
  std::vector<GpuRecord> gpu_ranks;         // by rank over all roles; empty: the run was not on GPUs
  std::optional<EndedEarly> ended_early;
};

// Seconds from the end of each step to that of the next, of a job's measured steps; of a round of optimizer
// steps a step's share. The first step of all counts from the trace's begin. Asynchronous workers: the time
// in which server 0 applied as many gradients as there are workers, in the window that asynchrony.hpp tells.
struct StepTimes {
  int first_step = 0;  // the trace's number of the first of them; asynchronous: 0
  std::vector<double> seconds;
  // The step of median time: of an even number the faster of the two in the middle. Asynchronous: -1.
  int median_step = -1;
  // Between the values beside them, linearly (Hyndman, Fan, "Sample Quantiles in Statistical Packages",
  // The American Statistician 50 (1996), definition 7), but for the median, which is that of `median_step`.
  double least_s = 0, lower_quartile_s = 0, median_s = 0, upper_quartile_s = 0, most_s = 0;
  // What half of the steps lie within, over the median.
  double spread() const { return (upper_quartile_s - lower_quartile_s) / median_s; }
};
// RunError if the job has no step behind the warm-up.
StepTimes step_times(const Trace& trace, int job, int warmup_steps);

// The trace as if it had ended with `step`: later rows are left out, and so are kernels; bytes are those of
// the steps that remain. Its rows stand in the same order.
Trace up_to_step(const Trace& trace, int step);

// A measured trace, evaluated: figures, breakdown and critical path of its median step.
struct MeasuredFigures {
  StepTimes times;
  Trace step;  // the trace up to its median step (asynchronous: all of it)
  Metrics metrics;
  std::vector<PathSegment> path;  // rows of `step`; asynchronous: empty
};
// RunError if it failed or has no step to measure.
MeasuredFigures evaluate_measured(const Trace& trace, const Scenario& scenario, const Plan& plan,
                                  int warmup_steps);

}  // namespace rehearse
