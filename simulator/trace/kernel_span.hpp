// A kernel that a GPU carried out in a measured run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse {

// The category of their events in a trace, and their args.kind.
inline constexpr std::string_view kKernelCategory = "kernel";

struct KernelSpan {
  std::string name;               // as in its source, with its parameters
  int op = -1, step = -1;         // whose launch it was; -1: not known, as in a CUDA graph
  int stream = 0;                 // of the GPU, as its profiling library numbers streams
  std::int64_t correlation = 0;   // the number of its launch; kernels of one CUDA graph share one
  double begin_s = 0, end_s = 0;  // as the spans of ops
};

}  // namespace rehearse
