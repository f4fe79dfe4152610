// Which GPU each rank of a run takes.
#pragma once

#include <string>
#include <vector>

#include "backend/runtime/transport.hpp"

namespace rehearse {

struct GpuPlace {
  int device = 0;
  std::string refused;             // why not on GPUs, the same at all ranks; empty if they are there
  std::vector<std::string> notes;  // on what sharing a GPU does to a run
};
// All ranks call it, each in the process that will use the GPU, before NCCL starts there: CUDA does not live
// through a fork. Rank r of its machine takes GPU r of those that it sees, from 0 on again where there are
// fewer. Ranks that share a GPU, which `oversubscribe` allows, then count as machines of their own to NCCL,
// which refuses them otherwise, and go through its sockets.
GpuPlace take_gpu(Transport& transport, bool oversubscribe);

}  // namespace rehearse
