// Measures the links between GPUs as NCCL uses them, for calibration.
#pragma once

#include <memory>
#include <string>

#include "backend/runtime/link_carrier.hpp"
#include "backend/runtime/transport.hpp"

namespace rehearse {

struct NcclLinkOptions {
  // Values of NCCL_ALGO and NCCL_PROTO, which NCCL reads once per process; empty: as in the environment.
  std::string algorithm, protocol;
  bool oversubscribe = false;  // several ranks may share a GPU
  double patience_s = 60;
};

// Creates the carrier. All ranks must call it, under the conditions of take_gpu(), before NCCL starts in
// their processes. Times are measured as nccl-tests does: operations in place, one after the other on a
// stream, between two events, after one operation that does not count; the result is their mean at the
// slowest rank. All are issued before the first begins. Throws RunError if a rank has no GPU or if NCCL
// fails, for example because it cannot use a forced algorithm.
std::unique_ptr<LinkCarrier> nccl_links(const NcclLinkOptions& options, Transport& transport);

}  // namespace rehearse
