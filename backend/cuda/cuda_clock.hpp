// Converts CUDA events to times of this machine's monotonic clock.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

namespace rehearse {

// Returns the priority of streams whose operations should begin before those of others.
int most_urgent_priority();

// Owns a CUDA event. The constructor throws RunError if CUDA cannot create it.
class CudaEvent {
public:
  explicit CudaEvent(unsigned flags = cudaEventDefault);
  CudaEvent(CudaEvent&& other) noexcept : event_(other.event_) { other.event_ = nullptr; }
  CudaEvent& operator=(CudaEvent&& other) noexcept;
  ~CudaEvent();
  cudaEvent_t get() const { return event_; }

private:
  cudaEvent_t event_ = nullptr;
};

// Returns the time from one event to another in seconds; both have been reached and record times.
double elapsed_s(const CudaEvent& from, const CudaEvent& to);

// Compares the GPU's clock with the host's at the beginning and at the end, and assumes that the GPU's clock
// runs evenly in between.
class CudaClock {
public:
  explicit CudaClock(cudaStream_t stream);
  // Takes the second reading; nothing may be running.
  void end(cudaStream_t stream);
  // Returns when these events, of one stream and in its order, were reached, in seconds of the monotonic
  // clock; valid after end().
  std::vector<double> seconds(const std::vector<CudaEvent>& events) const;
  double error_s() const;  // upper bound: half of a reading's duration

private:
  struct Reading {
    CudaEvent event;
    double host_s = 0, error_s = 0;
  };
  static Reading read(cudaStream_t stream);
  Reading begin_, end_;
  double speed_ = 1;  // of the host's clock relative to the GPU's
};

}  // namespace rehearse
