// Runs ops on a GPU with NCCL: each stream of the schedule is a CUDA stream, which runs asynchronously;
// events order and time the ops.
#pragma once

#include <memory>

#include "backend/cuda/cuda_arithmetic.hpp"
#include "backend/runtime/hardware.hpp"
#include "backend/runtime/transport.hpp"
#include "backend/runtime/wiring.hpp"
#include "backend/runtime/workload.hpp"

namespace rehearse {

struct CudaHardwareOptions {
  // The run fails if no op ends, or a peer does not join, for this many seconds.
  double patience_s = 60;
  // The workload sleeps on the host instead of computing on the GPU.
  bool timed = false;
  // If set, collectives are sent as the messages of the schedule's algorithms; else as NCCL's collectives.
  bool message_tables = false;
  bool graphs = false;   // steps are captured as CUDA graphs and then launched
  bool kernels = false;  // the GPU's kernels are recorded if CUPTI is there
  bool choices = false;  // NCCL reports what it chooses for each collective
};

// Creates the hardware of `rank`, numbered over all roles. All ranks must call it, since they create NCCL's
// communicators together, over the transport. Throws RunError if that fails, or if GPUs cannot run the
// schedule (see refuse_unordered()).
std::unique_ptr<Hardware> cuda_hardware(const Schedule& schedule, const Wiring& wiring, int rank,
                                        Transport& transport, Workload& workload, CudaArithmetic& arithmetic,
                                        const CudaHardwareOptions& options);

}  // namespace rehearse
