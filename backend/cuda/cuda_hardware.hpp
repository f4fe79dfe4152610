// A GPU and NCCL: ops are issued to CUDA streams, one for each stream of the schedule, and run on by
// themselves; events order and time them.
#pragma once

#include <memory>

#include "backend/cuda/cuda_arithmetic.hpp"
#include "backend/runtime/hardware.hpp"
#include "backend/runtime/transport.hpp"
#include "backend/runtime/wiring.hpp"
#include "backend/runtime/workload.hpp"

namespace rehearse {

struct CudaHardwareOptions {
  // After so long without an op that ends, or without a peer that comes, the run fails.
  double patience_s = 60;
  // The workload spends its time on the host (sleeps), not on the GPU.
  bool timed = false;
  // Collectives go as the messages of the schedule's own algorithms; else as NCCL's collectives.
  bool message_tables = false;
  bool graphs = false;   // steps are captured as CUDA graphs and then launched
  bool kernels = false;  // the GPU's kernels are recorded, if CUPTI is there
  bool choices = false;  // NCCL is asked what it chooses for each collective
};

// For `rank` of all roles; all ranks call it, since they create NCCL's communicators together by way of the
// transport. RunError if that fails, or if the schedule is not for GPUs (refuse_unordered).
std::unique_ptr<Hardware> cuda_hardware(const Schedule& schedule, const Wiring& wiring, int rank,
                                        Transport& transport, Workload& workload, CudaArithmetic& arithmetic,
                                        const CudaHardwareOptions& options);

}  // namespace rehearse
