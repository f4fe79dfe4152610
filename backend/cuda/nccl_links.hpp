// The links between GPUs as NCCL uses them, for calibration.
#pragma once

#include <memory>
#include <string>

#include "backend/runtime/link_carrier.hpp"
#include "backend/runtime/transport.hpp"

namespace rehearse {

struct NcclLinkOptions {
  // NCCL_ALGO and NCCL_PROTO, which NCCL reads once in a process; empty: as the environment has them.
  std::string algorithm, protocol;
  bool oversubscribe = false;  // several ranks may share a GPU
  double patience_s = 60;
};

// All ranks call it, as take_gpu(), before NCCL starts in their processes. Times are taken as nccl-tests
// takes them: operations in place, one after the other on a stream, between two events after one that is not
// counted, the mean of them at the slowest rank. All are issued before the first begins. RunError if not all
// ranks have a GPU, or if NCCL fails, as it does where it cannot take what is forced.
std::unique_ptr<LinkCarrier> nccl_links(const NcclLinkOptions& options, Transport& transport);

}  // namespace rehearse
