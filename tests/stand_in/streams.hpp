// Streams, events and graphs: each hardware queue is a thread that carries out operations in order.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace stand_in {

// Something that ends once, at a time.
class Completion {
public:
  void end();
  void wait() const;
  bool ended() const;
  double time_s() const;  // after its end

private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool ended_ = false;
  double time_s_ = 0;
};

// The current device of the calling thread. A violation if the thread has chosen none: CUDA would take GPU 0,
// whichever GPU the rank has.
int current_device(const char* call);
void choose_device(int device);

// A violation if the thread's device is not the stream's.
void expect_stream(cudaStream_t stream, const char* call);
// Adds an operation to a stream, or to the graph that is being captured from it.
void push(cudaStream_t stream, std::function<void()> operation);
bool is_capturing(cudaStream_t stream);
std::uint32_t stream_number(cudaStream_t stream);  // of this process; 0: the default stream
// Waits for all that the streams of this process have been given.
void drain_all();

struct Capture;

}  // namespace stand_in

// CUDA leaves these types to its library.
struct CUevent_st {
  std::mutex mutex;
  std::shared_ptr<stand_in::Completion> last;  // of the last record; null: never recorded
  unsigned flags = 0;
  // Where it was last recorded by a stream that is being captured, and its number there.
  std::shared_ptr<stand_in::Capture> capture;
  std::size_t number = 0;
};
