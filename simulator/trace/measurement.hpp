// Describes how a measured trace was made, and evaluates it: its figures are those of its median step.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulator/trace/critical_path.hpp"
#include "simulator/trace/gpu_record.hpp"
#include "simulator/trace/metrics.hpp"

namespace rehearse {

// A run that failed; its trace contains the steps that all ranks had finished.
struct EndedEarly {
  int finished_steps = 0, steps = 0;  // of the schedule, including the warm-up
  std::string cause;                  // "rank 2 was ended by signal 9 (Killed)"
};

// How a run was made. Unknown text is empty, unknown numbers are 0.
struct Measurement {
  std::string executor;   // "host", "cuda", "emulated"
  std::string transport;  // "TCP", "Open MPI 4.1.4", "NCCL 2.19.3"
  std::string processor;  // "Intel Xeon Platinum 8481C"
  int cores = 0;          // of one host, available to its ranks
  std::string gpu;        // "NVIDIA H200"
  int gpus = 0;           // of one host
  int hosts = 1;
  std::map<std::string, std::string> versions;  // {"rehearse-run", "1.0"}, {"CUDA", "12.4"}
  std::string date;                             // ISO 8601, UTC: "2025-11-21T10:04:00Z"
  std::string command;                          // command that made the run
  RealRun::Compute compute = RealRun::Compute::real;
  int warmup_steps = 0;                     // the trace's first steps, which are excluded from all figures
  std::vector<double> losses;               // by step, including the warm-up; empty: unknown
  std::optional<bool> gradients_identical;  // synchronised gradients were bit-identical on all their ranks
  std::vector<std::string> notes;           // "8 ranks on 2 cores", and other peculiarities
  std::vector<GpuRecord> gpu_ranks;         // by rank over all roles; empty: the run was not on GPUs
  std::optional<EndedEarly> ended_early;
};

// Seconds from the end of each step to that of the next, for a job's measured steps; for a round of several
// optimizer steps, a step's share. The very first step counts from the beginning of the trace. For
// asynchronous workers: the time in which server 0 applied as many gradients as there are workers, in the
// window described in asynchrony.hpp.
struct StepTimes {
  int first_step = 0;  // the trace's number of the first of these steps; asynchronous: 0
  std::vector<double> seconds;
  // The step of median time; of an even number of steps, the faster of the two in the middle. Asynchronous:
  // -1.
  int median_step = -1;
  // Quantiles, interpolated linearly (Hyndman, Fan, "Sample Quantiles in Statistical Packages", The American
  // Statistician 50 (1996), definition 7), except for the median, which is the time of `median_step`.
  double least_s = 0, lower_quartile_s = 0, median_s = 0, upper_quartile_s = 0, most_s = 0;
  // Returns the range that contains half of the steps, over the median.
  double spread() const { return (upper_quartile_s - lower_quartile_s) / median_s; }
};
// Throws RunError if the job has no step after the warm-up.
StepTimes step_times(const Trace& trace, int job, int warmup_steps);

// Returns the trace as if it had ended with `step`: omits later rows and all kernels, and scales bytes to the
// steps that remain. The order of rows does not change.
Trace up_to_step(const Trace& trace, int step);

// An evaluated measured trace: figures, breakdown and critical path of its median step.
struct MeasuredFigures {
  StepTimes times;
  Trace step;  // the trace up to its median step (asynchronous: all of it)
  Metrics metrics;
  std::vector<PathSegment> path;  // rows of `step`; asynchronous: empty
};
// Throws RunError if the run failed or has no step to measure.
MeasuredFigures evaluate_measured(const Trace& trace, const Scenario& scenario, const Plan& plan,
                                  int warmup_steps);

}  // namespace rehearse
