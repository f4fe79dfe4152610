#include "backend/cuda/cuda_clock.hpp"

#include <limits>
#include <utility>

#include "backend/cuda/check.hpp"
#include "backend/runtime/control.hpp"

namespace rehearse {

int most_urgent_priority() {
  int least = 0, greatest = 0;
  CHECKED(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  return greatest;
}

CudaEvent::CudaEvent(unsigned flags) {
  CHECKED(cudaEventCreateWithFlags(&event_, flags));
}

CudaEvent& CudaEvent::operator=(CudaEvent&& other) noexcept {
  std::swap(event_, other.event_);
  return *this;
}

CudaEvent::~CudaEvent() {
  if (event_ != nullptr) (void)cudaEventDestroy(event_);
}

double elapsed_s(const CudaEvent& from, const CudaEvent& to) {
  float milliseconds = 0;
  CHECKED(cudaEventElapsedTime(&milliseconds, from.get(), to.get()));
  return 1e-3 * static_cast<double>(milliseconds);
}

// Records an event between two readings of the host's clock; the fastest of several tries counts.
CudaClock::Reading CudaClock::read(cudaStream_t stream) {
  constexpr int kTries = 30;
  CHECKED(cudaStreamSynchronize(stream));
  Reading best;
  best.error_s = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    Reading reading;
    const double before_s = monotonic_s();
    CHECKED(cudaEventRecord(reading.event.get(), stream));
    CHECKED(cudaEventSynchronize(reading.event.get()));
    const double after_s = monotonic_s();
    reading.host_s = (before_s + after_s) / 2;
    reading.error_s = (after_s - before_s) / 2;
    if (reading.error_s < best.error_s) best = std::move(reading);
  }
  return best;
}

CudaClock::CudaClock(cudaStream_t stream) : begin_(read(stream)) {}

void CudaClock::end(cudaStream_t stream) {
  // Over a shorter time, the uncertainty of the readings outweighs the drift of the clocks.
  constexpr double kLongEnough_s = 1;
  end_ = read(stream);
  const double gpu_s = elapsed_s(begin_.event, end_.event);
  speed_ = gpu_s > kLongEnough_s ? (end_.host_s - begin_.host_s) / gpu_s : 1;
}

std::vector<double> CudaClock::seconds(const std::vector<CudaEvent>& events) const {
  // CUDA returns intervals in ms as floats, whose resolution gets coarser with length: 0.24 us at 4 s.
  constexpr double kFar_s = 4;
  std::vector<double> times;
  const CudaEvent* anchor = &begin_.event;
  double anchor_s = 0;
  for (const CudaEvent& event : events) {
    const double gpu_s = anchor_s + elapsed_s(*anchor, event);
    times.push_back(begin_.host_s + speed_ * gpu_s);
    if (gpu_s - anchor_s < kFar_s) continue;
    anchor = &event;
    anchor_s = gpu_s;
  }
  return times;
}

double CudaClock::error_s() const {
  return begin_.error_s > end_.error_s ? begin_.error_s : end_.error_s;
}

}  // namespace rehearse
