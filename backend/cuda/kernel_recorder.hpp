// The kernels that this process's GPU carries out, as CUPTI's Activity API tells them. The library is loaded
// when it is asked for: nothing that we build needs it.
#pragma once

#include <memory>
#include <vector>

#include "backend/runtime/hardware.hpp"
#include "simulator/trace/kernel_span.hpp"

namespace rehearse {

// Records from its construction until end(). One at a time: CUPTI knows one client of a process.
class KernelRecorder {
public:
  // RunError if CUPTI is not there or refuses.
  KernelRecorder();
  ~KernelRecorder();
  KernelRecorder(const KernelRecorder&) = delete;
  KernelRecorder& operator=(const KernelRecorder&) = delete;

  // Attributes kernels that the calling thread launches to this op until leave(). Thread-safe.
  void enter(const OpCall& call);
  void leave();
  // Called once, when nothing is running any more. Times are this machine's monotonic clock.
  std::vector<KernelSpan> end();
  long dropped() const;  // kernels that CUPTI had no room for; after end()

private:
  struct Recording;
  std::unique_ptr<Recording> recording_;
};

// enter() and leave(); nothing without a recorder.
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
