#include "tests/stand_in/streams.hpp"

#include <fmt/format.h>

#include <atomic>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "tests/stand_in/settings.hpp"

namespace stand_in {
namespace {

// A hardware queue: runs the operations of its streams in order, so a stream that waits holds up all streams
// of its queue, as on a GPU (CUDA Programming Guide, CUDA_DEVICE_MAX_CONNECTIONS).
class Queue {
public:
  Queue() : thread_([this] { run(); }) { thread_.detach(); }
  void push(std::function<void()> operation) {
    const std::lock_guard lock(mutex_);
    operations_.push_back(std::move(operation));
    changed_.notify_one();
  }

private:
  void run() {
    for (;;) {
      std::function<void()> operation;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !operations_.empty(); });
        operation = std::move(operations_.front());
        operations_.pop_front();
      }
      delay();
      operation();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> operations_;
  std::thread thread_;
};

std::mutex mutex;  // protects the variables below
std::set<cudaStream_t> streams;
std::vector<Queue*> queues;  // never destroyed, since their threads run until the process ends
std::size_t next_queue = 0;

thread_local int device_of_thread = -1;

}  // namespace

// The operations of all streams of a capture, in the order of the calls, which satisfies their dependencies.
struct Capture {
  struct Operation {
    cudaStream_t stream = nullptr;
    std::function<void()> run;  // null: records event number `event`, or waits for it
    std::size_t event = 0;
    bool records = false;
  };
  cudaStream_t origin = nullptr;
  std::mutex mutex;  // protects the members below, as streams can be used by several threads
  std::vector<Operation> operations;
  std::size_t events = 0;
  std::set<cudaStream_t> joined;

  void add(Operation operation) {
    const std::lock_guard lock(mutex);
    joined.insert(operation.stream);
    operations.push_back(std::move(operation));
  }
};

}  // namespace stand_in

struct CUstream_st {
  int device = 0;
  std::uint32_t number = 0;
  stand_in::Queue* queue = nullptr;
  std::mutex mutex;
  std::condition_variable idle;
  long pending = 0;
  std::shared_ptr<stand_in::Capture> capture;

  void push(std::function<void()> operation) {
    {
      const std::lock_guard lock(mutex);
      ++pending;
    }
    queue->push([this, operation = std::move(operation)] {
      operation();
      const std::lock_guard lock(mutex);
      if (--pending == 0) idle.notify_all();
    });
  }
  bool empty() {
    const std::lock_guard lock(mutex);
    return pending == 0;
  }
  void settle() {
    std::unique_lock lock(mutex);
    idle.wait(lock, [&] { return pending == 0; });
  }
};

// CUDA's headers leave the definition of these types to the library.
struct CUgraph_st {
  std::shared_ptr<stand_in::Capture> capture;
};
struct CUgraphExec_st {
  std::shared_ptr<stand_in::Capture> capture;
};

namespace stand_in {
namespace {

bool is_special(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

cudaStream_t new_stream(int device) {
  auto* stream = new CUstream_st;
  stream->device = device;
  const std::lock_guard lock(mutex);
  const std::size_t number = next_queue++ % static_cast<std::size_t>(settings().queues);
  stream->number = static_cast<std::uint32_t>(next_queue);
  if (number == queues.size()) queues.push_back(new Queue);
  stream->queue = queues[number];
  streams.insert(stream);
  return stream;
}

// Returns the stream to use. The default stream has its own queue and does not wait for non-blocking streams.
cudaStream_t resolve(cudaStream_t stream) {
  if (!is_special(stream)) return stream;
  static cudaStream_t const legacy = [] {
    auto* made = new CUstream_st;
    made->queue = new Queue;
    const std::lock_guard lock(mutex);
    streams.insert(made);
    return made;
  }();
  return legacy;
}

std::vector<cudaStream_t> all_streams() {
  const std::lock_guard lock(mutex);
  return {streams.begin(), streams.end()};
}

void record(cudaEvent_t event, cudaStream_t stream) {
  const auto done = std::make_shared<Completion>();
  {
    const std::lock_guard lock(event->mutex);
    event->last = done;
    event->capture = nullptr;
  }
  stream->push([done] { done->end(); });
}

void play(const Capture& capture, cudaStream_t onto) {
  // The graph begins after the earlier operations of its stream, and the stream's later operations follow its
  // part of the graph, which waits for all other parts.
  const auto begin = std::make_shared<Completion>();
  onto->push([begin] { begin->end(); });
  std::vector<std::shared_ptr<Completion>> events(capture.events);
  std::set<cudaStream_t> begun;
  for (const Capture::Operation& operation : capture.operations) {
    cudaStream_t stream = operation.stream == capture.origin ? onto : operation.stream;
    if (begun.insert(stream).second && stream != onto) stream->push([begin] { begin->wait(); });
    if (operation.run) {
      stream->push(operation.run);
    } else if (operation.records) {
      events[operation.event] = std::make_shared<Completion>();
      stream->push([done = events[operation.event]] { done->end(); });
    } else {
      stream->push([done = events[operation.event]] { done->wait(); });
    }
  }
}

}  // namespace

void Completion::end() {
  const std::lock_guard lock(mutex_);
  time_s_ = now_s();
  ended_ = true;
  changed_.notify_all();
}
void Completion::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_; });
}
bool Completion::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}
double Completion::time_s() const {
  const std::lock_guard lock(mutex_);
  return time_s_;
}

int current_device(const char* call) {
  if (device_of_thread < 0)
    violation(fmt::format("{} was called by a thread that has not chosen a device (cudaSetDevice)", call));
  return device_of_thread;
}

void choose_device(int device) {
  device_of_thread = device;
}

void expect_stream(cudaStream_t stream, const char* call) {
  const int device = current_device(call);
  if (is_special(stream)) return;
  const std::lock_guard lock(mutex);
  if (!streams.contains(stream)) violation(fmt::format("{} on a stream that does not exist", call));
  if (stream->device != device)
    violation(fmt::format("{} on a stream of device {} by a thread whose device is {}", call, stream->device,
                          device));
}

void push(cudaStream_t stream, std::function<void()> operation) {
  stream = resolve(stream);
  if (stream->capture)
    stream->capture->add({stream, std::move(operation), 0, false});
  else
    stream->push(std::move(operation));
}

bool is_capturing(cudaStream_t stream) {
  return resolve(stream)->capture != nullptr;
}

std::uint32_t stream_number(cudaStream_t stream) {
  return resolve(stream)->number;
}

void drain_all() {
  for (cudaStream_t stream : all_streams()) stream->settle();
}

}  // namespace stand_in

using namespace stand_in;

namespace {

cudaError_t begin_capture(cudaStream_t stream) {
  if (stream->capture) return cudaErrorStreamCaptureInvalidated;
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->joined = {stream};
  return cudaSuccess;
}

void expect_no_capture(cudaStream_t stream, const char* call) {
  if (resolve(stream)->capture) violation(fmt::format("{} on a stream that is being captured", call));
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const int device = current_device("cudaStreamCreateWithFlags");
  if (flags != cudaStreamNonBlocking) violation("a stream that waits for the default stream");
  *stream = new_stream(device);
  count(&Counts::streams, 1);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  (void)current_device("cudaDeviceGetStreamPriorityRange");
  *least = 0;
  *greatest = -5;  // as on an H100
  return cudaSuccess;
}

// Waits until the stream's operations have ended; leaves the object allocated, as operations may still point
// to it.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  expect_stream(stream, "cudaStreamDestroy");
  stream->settle();
  const std::lock_guard lock(stand_in::mutex);
  if (streams.erase(stream) == 0) violation("cudaStreamDestroy of a stream that does not exist");
  count(&Counts::streams, -1);
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  expect_stream(stream, "cudaStreamQuery");
  expect_no_capture(stream, "cudaStreamQuery");
  return resolve(stream)->empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  expect_stream(stream, "cudaStreamSynchronize");
  expect_no_capture(stream, "cudaStreamSynchronize");
  resolve(stream)->settle();
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  expect_stream(stream, "cudaLaunchHostFunc");
  push(stream, [function, data] { function(data); });
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  (void)current_device("cudaDeviceSynchronize");
  drain_all();
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  expect_stream(stream, "cudaStreamWaitEvent");
  stream = resolve(stream);
  const std::lock_guard lock(event->mutex);
  if (event->capture) {  // the stream joins the event's capture
    stream->capture = event->capture;
    stream->capture->add({stream, nullptr, event->number, false});
    return cudaSuccess;
  }
  if (stream->capture)
    violation("cudaStreamWaitEvent in a capture for an event that was recorded outside of it");
  if (event->last) stream->push([last = event->last] { last->wait(); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  (void)current_device("cudaEventCreateWithFlags");
  *event = new CUevent_st;
  (*event)->flags = flags;
  count(&Counts::events, 1);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  count(&Counts::events, -1);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  expect_stream(stream, "cudaEventRecord");
  stream = resolve(stream);
  if (!stream->capture) {
    record(event, stream);
    return cudaSuccess;
  }
  const std::lock_guard lock(event->mutex);
  event->capture = stream->capture;
  {
    const std::lock_guard of_capture(stream->capture->mutex);
    event->number = stream->capture->events++;
  }
  stream->capture->add({stream, nullptr, event->number, true});
  return cudaSuccess;
}

// An external record becomes a node of the graph that records a time; nothing in the capture waits for it.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags != cudaEventRecordExternal || !resolve(stream)->capture) return cudaEventRecord(event, stream);
  expect_stream(stream, "cudaEventRecordWithFlags");
  const auto done = std::make_shared<Completion>();
  {
    const std::lock_guard lock(event->mutex);
    event->last = done;
    event->capture = nullptr;
  }
  push(stream, [done] { done->end(); });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  (void)current_device("cudaEventQuery");
  const std::lock_guard lock(event->mutex);
  if (event->capture) return cudaErrorCapturedEvent;
  return !event->last || event->last->ended() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  (void)current_device("cudaEventSynchronize");
  std::shared_ptr<Completion> last;
  {
    const std::lock_guard lock(event->mutex);
    if (event->capture) return cudaErrorCapturedEvent;
    last = event->last;
  }
  if (last) last->wait();
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  (void)current_device("cudaEventElapsedTime");
  for (cudaEvent_t event : {from, to}) {
    const std::lock_guard lock(event->mutex);
    if ((event->flags & cudaEventDisableTiming) != 0 || !event->last || event->capture)
      return cudaErrorInvalidResourceHandle;
    if (!event->last->ended()) return cudaErrorNotReady;
  }
  *milliseconds = static_cast<float>(1e3 * (to->last->time_s() - from->last->time_s()));
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  expect_stream(stream, "cudaStreamBeginCapture");
  return begin_capture(resolve(stream));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  expect_stream(stream, "cudaStreamEndCapture");
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture || capture->origin != stream) return cudaErrorIllegalState;
  // Walks backward from the end to check that the end of the origin stream waits for all work, directly or
  // through other streams.
  std::set<cudaStream_t> awaited_streams = {stream};
  std::set<std::size_t> awaited_events;
  cudaError_t status = cudaSuccess;
  for (auto operation = capture->operations.rbegin(); operation != capture->operations.rend(); ++operation) {
    const bool waits = !operation->run && !operation->records;
    if (operation->records && awaited_events.contains(operation->event))
      awaited_streams.insert(operation->stream);
    const bool awaited = awaited_streams.contains(operation->stream);
    if (waits && awaited) awaited_events.insert(operation->event);
    if (operation->run && !awaited) status = cudaErrorStreamCaptureUnjoined;
  }
  for (cudaStream_t other : capture->joined) other->capture = nullptr;
  *graph = status == cudaSuccess ? new CUgraph_st{capture} : nullptr;
  if (status == cudaSuccess) count(&Counts::graphs, 1);
  return status;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = new CUgraphExec_st{graph->capture};
  count(&Counts::graphs, 1);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  expect_stream(stream, "cudaGraphLaunch");
  expect_no_capture(stream, "cudaGraphLaunch");
  play(*executable->capture, stream);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  count(&Counts::graphs, -1);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  count(&Counts::graphs, -1);
  return cudaSuccess;
}

}  // extern "C"
