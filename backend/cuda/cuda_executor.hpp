// The executor that runs a schedule on GPUs, a rank on each.
#pragma once

#include <optional>
#include <string>

#include "backend/runs/real_run.hpp"
#include "simulator/schedule/op.hpp"

namespace rehearse {

struct CudaOptions {
  bool oversubscribe = false;  // several ranks may share a GPU
  double patience_s = 60;      // without anything that ends
  bool timed = false;          // computation is slept, not computed
  // Collectives go as the messages of the schedule's own algorithms; else as NCCL's collectives, with the
  // algorithm that all of the schedule's all-reduces have in common, where NCCL has it.
  bool message_tables = false;
  std::optional<Algorithm> all_reduce;
  bool graphs = false;   // each step is launched as one CUDA graph
  bool kernels = false;  // the GPU's kernels are recorded, if CUPTI is there
  bool choices = false;  // what NCCL chooses for each collective is recorded, if it tells it
};

struct CudaChoice {
  Executor executor;
  std::string refused;  // why not on GPUs, the same at all ranks; empty if they are there
};
// All ranks call it, as take_gpu(), which says who takes which GPU.
CudaChoice cuda_executor(const CudaOptions& options, Transport& transport);

}  // namespace rehearse
