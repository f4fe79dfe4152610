// Writes traces in the format of PyTorch's profiler, for tests.
#pragma once

#include <fmt/format.h>

#include <string>

namespace rehearse::test {

inline constexpr int kMain = 100, kBackward = 101, kGloo = 102, kStream = 7, kCollectives = 20;

// Builds a Chrome trace; times are in microseconds.
class TraceText {
public:
  explicit TraceText(std::string head = "") : head_(std::move(head)) {}
  void add(const std::string& category, const std::string& name, double ts, double end, int thread,
           const std::string& args = "") {
    events_ += fmt::format(
        "{}\n{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": 1, \"tid\": {}, \"ts\": {}, "
        "\"dur\": {}, \"args\": {{{}}}}}",
        events_.empty() ? "" : ",", category, name, thread, ts + 1e12, end - ts, args);
  }
  void note(const std::string& name, double ts, double end, int thread = kMain) {
    add("user_annotation", name, ts, end, thread);
  }
  void op(const std::string& name, double ts, double end, int sequence, const std::string& dims = "") {
    std::string args = fmt::format("\"Sequence number\": {}, \"Fwd thread id\": 0", sequence);
    if (shapes && !dims.empty())
      args += fmt::format(", \"Input Dims\": {}, \"Input type\": [\"float\", \"float\"]", dims);
    add("cpu_op", name, ts, end, kMain, args);
  }
  // Adds a node of the backward pass.
  void node(const std::string& name, double ts, double end, int sequence) {
    add("cpu_op", "autograd::engine::evaluate_function: " + name, ts, end, backward_thread,
        fmt::format("\"Sequence number\": {}, \"Fwd thread id\": 1", sequence));
  }
  void accumulate(double ts, double end, const std::string& dims) {
    add("cpu_op", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", ts, end,
        backward_thread);
    add("cpu_op", "torch::autograd::AccumulateGrad", ts + 0.25, end - 0.25, backward_thread,
        shapes ? fmt::format("\"Input Dims\": [{}], \"Input type\": [\"float\"]", dims) : "");
  }
  // Adds a kernel and the call that launches it.
  void kernel(const std::string& name, double launched, double ts, double end, int thread,
              int stream = kStream) {
    ++correlation_;
    const std::string args = fmt::format("\"correlation\": {}", correlation_);
    add(runtime, "cudaLaunchKernel", launched, launched + 2, thread, args);
    add(kernels, name, ts, end, stream, args);
  }
  std::string text() const { return "{" + head_ + "\"traceEvents\": [" + events_ + "\n]}\n"; }

  bool shapes = true;
  std::string runtime = "cuda_runtime", kernels = "kernel";  // categories
  int backward_thread = kMain;

private:
  std::string head_, events_;
  int correlation_ = 0;
};

}  // namespace rehearse::test
