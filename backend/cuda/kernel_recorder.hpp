// Records the kernels that this process's GPU runs, with CUPTI's Activity API. The library is loaded on first
// use, so that our programs run without it.
#pragma once

#include <memory>
#include <vector>

#include "backend/runtime/hardware.hpp"
#include "simulator/trace/kernel_span.hpp"

namespace rehearse {

// Records from its construction until end(). Only one may exist at a time, because CUPTI supports one client
// per process.
class KernelRecorder {
public:
  // Throws RunError if CUPTI is missing or refuses.
  KernelRecorder();
  ~KernelRecorder();
  KernelRecorder(const KernelRecorder&) = delete;
  KernelRecorder& operator=(const KernelRecorder&) = delete;

  // Attributes kernels that the calling thread launches to this op until leave(). Thread-safe.
  void enter(const OpCall& call);
  void leave();
  // Ends the recording; called once, when nothing is running any more. Times are on this machine's monotonic
  // clock.
  std::vector<KernelSpan> end();
  long dropped() const;  // kernels for which CUPTI had no room; valid after end()

private:
  struct Recording;
  std::unique_ptr<Recording> recording_;
};

// Calls enter() and leave(); does nothing without a recorder.
class LaunchedBy {
public:
  LaunchedBy(KernelRecorder* recorder, const OpCall& call) : recorder_(recorder) {
    if (recorder_ != nullptr) recorder_->enter(call);
  }
  ~LaunchedBy() {
    if (recorder_ != nullptr) recorder_->leave();
  }
  LaunchedBy(const LaunchedBy&) = delete;
  LaunchedBy& operator=(const LaunchedBy&) = delete;

private:
  KernelRecorder* const recorder_;
};

}  // namespace rehearse
