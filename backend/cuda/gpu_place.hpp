// Assigns a GPU to each rank of a run.
#pragma once

#include <string>
#include <vector>

#include "backend/runtime/transport.hpp"

namespace rehearse {

struct GpuPlace {
  int device = 0;
  std::string refused;             // why not on GPUs, the same at all ranks; empty: not refused
  std::vector<std::string> notes;  // on how sharing a GPU affects a run
};
// Assigns the GPUs. All ranks must call it, each in the process that will use the GPU (CUDA does not survive
// a fork) and before NCCL starts there. Rank r of a machine takes the visible GPU r, modulo their number.
// Ranks may share a GPU only with `oversubscribe`. NCCL refuses to share GPUs within a machine, so these
// ranks then pretend to be on different machines and communicate over NCCL's sockets.
GpuPlace take_gpu(Transport& transport, bool oversubscribe);

}  // namespace rehearse
