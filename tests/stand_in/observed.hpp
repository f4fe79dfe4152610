// What the stand-in tells of its kernels to whoever observes them: the stand-in for CUPTI.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>

namespace stand_in {

struct Observer {
  // By the thread that launches a kernel; returns the number of the launch.
  std::uint32_t (*launched)() = nullptr;
  // By the thread that has carried it out.
  void (*ended)(const char* name, std::uint32_t launch, std::uint32_t stream, double begin_s,
                double end_s) = nullptr;
};

// As push(), of a kernel.
void push_kernel(cudaStream_t stream, std::string name, std::function<void()> operation);

}  // namespace stand_in

// Null: nobody observes any more. The observer stays where it is.
extern "C" void stand_in_observe(const stand_in::Observer* observer);
