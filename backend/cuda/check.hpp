// Checks the results of CUDA library calls: throws RunError with the call's name and the library's text.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

#include <string>
#include <string_view>

#include "models/text/error.hpp"

namespace rehearse {

[[noreturn]] inline void throw_failed(std::string_view call, const std::string& text) {
  throw RunError(std::string(call.substr(0, call.find('('))) + " failed: " + text);
}

inline void check_status(cudaError_t status, std::string_view call) {
  if (status != cudaSuccess)
    throw_failed(call, std::string(cudaGetErrorName(status)) + ": " + cudaGetErrorString(status));
}

inline void check_status(cublasStatus_t status, std::string_view call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw_failed(call, std::string(cublasGetStatusName(status)) + ": " + cublasGetStatusString(status));
}

#ifdef NCCL_VERSION_CODE
// ncclInProgress is not a failure: non-blocking communicators return it.
inline void check_status(ncclResult_t status, std::string_view call) {
  if (status != ncclSuccess && status != ncclInProgress)
    throw_failed(call, std::string(ncclGetErrorString(status)) + ": " + ncclGetLastError(nullptr));
}
#endif

}  // namespace rehearse

// Example: CHECKED(cudaMalloc(&memory, bytes));
#define CHECKED(call) ::rehearse::check_status(call, #call)
