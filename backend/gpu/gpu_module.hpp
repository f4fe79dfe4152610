// Runs on GPUs by way of a module that is loaded when GPUs are first asked for, so that runs on processors
// need not load CUDA's libraries.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/runs/real_run.hpp"
#include "backend/runtime/link_carrier.hpp"
#include "backend/runtime/transport.hpp"
#include "backend/training/arithmetic.hpp"
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

struct NcclLinkOptions {
  // Values of NCCL_ALGO and NCCL_PROTO, which NCCL reads once per process; empty: as in the environment.
  std::string algorithm, protocol;
  bool oversubscribe = false;  // several ranks may share a GPU
  double patience_s = 60;
};

// What the module contains. Its function `rehearse_gpu_module` returns it.
struct GpuModule {
  CudaChoice (*executor)(const CudaOptions& options, Transport& transport);
  std::unique_ptr<Arithmetic> (*first_gpu)();
  std::unique_ptr<LinkCarrier> (*links)(const NcclLinkOptions& options, Transport& transport);
};

// Whether this program was built with a module for GPUs.
bool built_for_gpus();

// Loads a module, the first of these files that exists. Throws RunError with the file, or the library that
// it needs, that is missing.
const GpuModule& load_gpu_module(const std::vector<std::string>& files);

// Each of these loads the module, and does then what cuda_executor(), CudaArithmetic and nccl_links() say.
// All ranks must call the first and the third. If one of them cannot load the module, the executor is
// refused, and the others throw RunError.
CudaChoice gpu_executor(const CudaOptions& options, Transport& transport);
std::unique_ptr<Arithmetic> first_gpu();
std::unique_ptr<LinkCarrier> gpu_links(const NcclLinkOptions& options, Transport& transport);

}  // namespace rehearse
