// Reads those events of a trace of PyTorch's profiler (Kineto; torch.profiler's export_chrome_trace) that
// show how long the parts of a training step take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rehearse {

enum class ProfilerEventKind : std::uint8_t {
  op,          // an operator, or a node of the backward pass, on a host thread
  annotation,  // record_function: "ProfilerStep#3", "Optimizer.step#SGD.step"
  module,      // with_stack: a call of an nn.Module
  launch,      // a call of the runtime or driver of CUDA, HIP or another accelerator
  kernel       // on a GPU or another accelerator: a kernel, a copy or a memset
};

// An event of the trace. Times are microseconds of the trace's clock.
struct ProfilerEvent {
  double begin_us = 0, end_us = 0;
  std::int64_t sequence = -1;     // of the autograd node that the op creates or runs; -1: none
  double elements = -1;           // of the first input (record_shapes); -1: unknown
  double leading = 0;             // its first dimension
  double second_leading = 0;      // first dimension of the second input
  std::uint32_t name = 0;         // index into ProfilerTrace::names
  std::uint32_t thread = 0;       // a host thread, or a GPU's stream
  std::uint32_t correlation = 0;  // shared by a launch and its kernel; 0: none
  ProfilerEventKind kind = ProfilerEventKind::op;
  std::uint8_t element_bytes = 0;  // of the first input; 0: unknown
  bool integers = false;           // the first input holds integers, such as token numbers
  bool backward = false;           // runs on behalf of another thread's forward pass ("Fwd thread id")
};

struct ProfilerTrace {
  std::string file;
  std::vector<ProfilerEvent> events;
  std::vector<std::string> names;
  std::string gpu;  // name of the first GPU (or other accelerator) in use; empty: not in the trace
  // Kind of an accelerator that is no GPU of CUDA or HIP: "xpu", "mtia", "hpu"; empty: the trace shows none.
  std::string accelerator;
  std::string communication;  // backend of torch.distributed; empty: none
  int ranks = 1;
  bool has_kernels = false;
};

inline constexpr std::size_t kMostProfilerEvents = 100'000'000;

// Reads `.json` or `.json.gz` event by event, so that only the retained events take memory. Throws
// InputError, naming the file and what was found, if the file does not exist, has damaged gzip data or JSON,
// is not a trace, is a trace that Rehearse wrote, or has more events than kMostProfilerEvents.
ProfilerTrace read_profiler_trace(const std::string& path);

}  // namespace rehearse
