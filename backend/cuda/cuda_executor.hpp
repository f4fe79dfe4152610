// Provides the executor that runs a schedule on GPUs, one rank on each.
#pragma once

#include <optional>
#include <string>

#include "backend/runs/real_run.hpp"
#include "simulator/schedule/op.hpp"

namespace rehearse {

struct CudaOptions {
  bool oversubscribe = false;  // several ranks may share a GPU
  double patience_s = 60;      // a run fails after this long in which nothing ends
  bool timed = false;          // computation is replaced by sleeping
  // If set, collectives are sent as the messages of the schedule's algorithms; else as NCCL's collectives,
  // with the algorithm that all all-reduces of the schedule have in common, if NCCL has it.
  bool message_tables = false;
  std::optional<Algorithm> all_reduce;
  bool graphs = false;   // each step is launched as one CUDA graph
  bool kernels = false;  // records the GPU's kernels, if CUPTI is there
  bool choices = false;  // records what NCCL chooses for each collective, if it reports that
};

struct CudaChoice {
  Executor executor;
  std::string refused;  // why not on GPUs, the same at all ranks; empty: not refused
};
// Returns the executor. All ranks must call it; the constraints of take_gpu(), which assigns the GPUs, apply.
CudaChoice cuda_executor(const CudaOptions& options, Transport& transport);

}  // namespace rehearse
