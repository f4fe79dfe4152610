// Reports the stand-in's kernels to an observer, which is the stand-in for CUPTI.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>

namespace stand_in {

struct Observer {
  // Called by the thread that launches a kernel; returns the number of the launch.
  std::uint32_t (*launched)() = nullptr;
  // Called by the thread that has run the kernel.
  void (*ended)(const char* name, std::uint32_t launch, std::uint32_t stream, double begin_s,
                double end_s) = nullptr;
};

// Like push(), but for a kernel, which is reported to the observer.
void push_kernel(cudaStream_t stream, std::string name, std::function<void()> operation);

}  // namespace stand_in

// Sets the observer, which must outlive all kernels; null removes it.
extern "C" void stand_in_observe(const stand_in::Observer* observer);
