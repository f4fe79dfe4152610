#include "backend/cuda/step_graphs.hpp"

#include <utility>

#include "backend/cuda/check.hpp"

namespace rehearse {

StepGraphs::StepGraphs(std::vector<cudaStream_t> streams) : streams_(std::move(streams)) {
  for (std::size_t i = 0; i < streams_.size(); ++i) joins_.emplace_back(cudaEventDisableTiming);
}

StepGraphs::~StepGraphs() {
  for (const cudaGraphExec_t graph : graphs_) (void)cudaGraphExecDestroy(graph);
}

// Captures all streams through stream 0, since a capture includes the streams that wait for its events.
void StepGraphs::begin(int stream) {
  meet();
  if (stream == 0) {
    {
      const std::lock_guard lock(mutex_);
      ++step_;
    }
    // Relaxed mode, so that threads that issue to other streams may make calls that the capture forbids in
    // its own thread.
    CHECKED(cudaStreamBeginCapture(streams_[0], cudaStreamCaptureModeRelaxed));
    CHECKED(cudaEventRecord(fork_.get(), streams_[0]));
  }
  meet();
  if (stream > 0) CHECKED(cudaStreamWaitEvent(streams_[static_cast<std::size_t>(stream)], fork_.get(), 0));
}

void StepGraphs::end(int stream) {
  if (stream > 0)
    CHECKED(cudaEventRecord(joins_[static_cast<std::size_t>(stream)].get(),
                            streams_[static_cast<std::size_t>(stream)]));
  meet();
  if (stream == 0) {
    for (std::size_t i = 1; i < streams_.size(); ++i)
      CHECKED(cudaStreamWaitEvent(streams_[0], joins_[i].get(), 0));
    cudaGraph_t graph = nullptr;
    CHECKED(cudaStreamEndCapture(streams_[0], &graph));
    cudaGraphExec_t executable = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
    (void)cudaGraphDestroy(graph);
    check_status(status, "cudaGraphInstantiate");
    graphs_.push_back(executable);
  }
  meet();
}

int StepGraphs::step() const {
  const std::lock_guard lock(mutex_);
  return step_;
}

void StepGraphs::launch() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(launched_, true)) return;
  for (const cudaGraphExec_t graph : graphs_) {
    CHECKED(cudaGraphLaunch(graph, streams_[0]));
    CHECKED(cudaEventRecord(ends_.emplace_back(cudaEventDisableTiming).get(), streams_[0]));
  }
}

StepGraphs::Progress StepGraphs::progress() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !launched_) return {};
  cudaError_t status = cudaSuccess;
  while (ended_ < ends_.size() && (status = cudaEventQuery(ends_[ended_].get())) == cudaSuccess) ++ended_;
  return {ended_, ends_.size(), status == cudaErrorNotReady ? cudaSuccess : status};
}

void StepGraphs::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

void StepGraphs::meet() {
  std::unique_lock lock(mutex_);
  const long own = meetings_;
  if (++waiting_ == static_cast<int>(streams_.size())) {
    waiting_ = 0;
    ++meetings_;
    changed_.notify_all();
  } else {
    changed_.wait(lock, [&] { return aborted_ || meetings_ > own; });
  }
  if (aborted_) throw RunError("another stream has failed");
}

}  // namespace rehearse
