// Measures the links between GPUs as NCCL uses them, for calibration.
#pragma once

#include <memory>

#include "backend/gpu/gpu_module.hpp"

namespace rehearse {

// Creates the carrier. All ranks must call it, under the conditions of take_gpu(), before NCCL starts in
// their processes. Times are measured as nccl-tests does: operations in place, one after the other on a
// stream, between two events, after one operation that does not count; the result is their mean at the
// slowest rank. All are issued before the first begins. Throws RunError if a rank has no GPU or if NCCL
// fails, for example because it cannot use a forced algorithm.
std::unique_ptr<LinkCarrier> nccl_links(const NcclLinkOptions& options, Transport& transport);

}  // namespace rehearse
