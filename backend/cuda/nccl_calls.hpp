// Maps a schedule's transfers to NCCL calls, for NcclCommunicator::issue.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "backend/runtime/workload.hpp"
#include "simulator/schedule/op.hpp"

namespace rehearse {

// Returns whether a call failed; calls of non-blocking communicators may still be in progress.
inline bool is_error(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

// Runs a collective in place; all-to-all as grouped sends and receives. NCCL chooses the algorithm. Throws
// RunError for precisions that NCCL cannot reduce.
ncclResult_t nccl_collective(ncclComm_t communicator, CollectiveKind kind, const Payload& payload,
                             int members, int member, cudaStream_t stream);
ncclResult_t nccl_message(ncclComm_t communicator, bool send, const Payload& payload, int peer,
                          cudaStream_t stream);

}  // namespace rehearse
