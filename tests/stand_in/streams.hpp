// Declares streams, events and graphs; each hardware queue is a thread that runs operations in order.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace stand_in {

// The end of an operation, which occurs once, and its time.
class Completion {
public:
  void end();
  void wait() const;
  bool ended() const;
  double time_s() const;  // seconds of the monotonic clock; valid after the end

private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool ended_ = false;
  double time_s_ = 0;
};

// Returns the current device of the calling thread. Reports a violation if the thread has not chosen one:
// CUDA would use GPU 0, whichever GPU the rank has.
int current_device(const char* call);
void choose_device(int device);

// Reports a violation if the thread's device is not the stream's.
void expect_stream(cudaStream_t stream, const char* call);
// Adds an operation to a stream, or to the graph that is being captured from it.
void push(cudaStream_t stream, std::function<void()> operation);
bool is_capturing(cudaStream_t stream);
std::uint32_t stream_number(cudaStream_t stream);  // unique within this process; 0: the default stream
// Waits until all streams of this process are idle.
void drain_all();

struct Capture;

}  // namespace stand_in

// CUDA's headers leave the definition of this type to the library.
struct CUevent_st {
  std::mutex mutex;
  std::shared_ptr<stand_in::Completion> last;  // of the last record; null: never recorded
  unsigned flags = 0;
  // The capture during which it was last recorded, and its number there; null: recorded outside a capture.
  std::shared_ptr<stand_in::Capture> capture;
  std::size_t number = 0;
};
