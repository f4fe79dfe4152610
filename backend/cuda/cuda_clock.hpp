// CUDA events as times of this machine's monotonic clock.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

namespace rehearse {

// Of streams whose operations should begin before those of others.
int most_urgent_priority();

// An event that is destroyed with its owner. RunError if CUDA has none.
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

// From one event that has been reached to another, in s; both record times.
double elapsed_s(const CudaEvent& from, const CudaEvent& to);

// The GPU's clock read against the host's at the beginning and at the end; between the two, the GPU's is
// taken to run evenly.
class CudaClock {
public:
  explicit CudaClock(cudaStream_t stream);
  // The second reading. Nothing is running.
  void end(cudaStream_t stream);
  // When these events of one stream, in its order, were reached, in s; after end().
  std::vector<double> seconds(const std::vector<CudaEvent>& events) const;
  double error_s() const;  // at most: half of what a reading took

private:
  struct Reading {
    CudaEvent event;
    double host_s = 0, error_s = 0;
  };
  static Reading read(cudaStream_t stream);
  Reading begin_, end_;
  double speed_ = 1;  // of the host's clock, seen from the GPU's
};

}  // namespace rehearse
