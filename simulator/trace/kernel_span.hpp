// Describes a kernel that a GPU ran in a measured run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse {

// The category of kernel events in a trace, and their args.kind.
inline constexpr std::string_view kKernelCategory = "kernel";

struct KernelSpan {
  std::string name;               // as in its source, with its parameters
  int op = -1, step = -1;         // that launched it; -1: unknown, as in a CUDA graph
  int stream = 0;                 // of the GPU, as its profiling library numbers streams
  std::int64_t correlation = 0;   // identifies its launch; kernels of one CUDA graph share one
  double begin_s = 0, end_s = 0;  // on the clock of the ops' spans
};

}  // namespace rehearse
