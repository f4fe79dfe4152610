// Turns the steps of a rank into CUDA graphs: captures all of them before anything runs, then launches them
// one after the other.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <mutex>
#include <vector>

#include "backend/cuda/cuda_clock.hpp"

namespace rehearse {

// Each stream has its own thread, which calls begin() and end() for every step. A step begins when the
// previous one has ended on all streams, because graphs launched onto one stream run in order.
class StepGraphs {
public:
  explicit StepGraphs(std::vector<cudaStream_t> streams);
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // Returns when all streams are being captured. Throws RunError after abort().
  void begin(int stream);
  // Returns when the step has become a graph. Throws RunError after abort().
  void end(int stream);
  int step() const;  // step of the last begin(), from 0 on
  // Launches all graphs at the first call, when all streams have ended the capture of their last step.
  void launch();
  // The number of launched graphs that have ended, and of launched graphs; both 0 before launch().
  struct Progress {
    std::size_t ended = 0, launched = 0;
    cudaError_t error = cudaSuccess;
  };
  Progress progress();
  void abort();

private:
  void meet();  // waits for the threads of all streams
  const std::vector<cudaStream_t> streams_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0, step_ = -1;
  long meetings_ = 0;
  bool aborted_ = false, launched_ = false;
  CudaEvent fork_{cudaEventDisableTiming};
  std::vector<CudaEvent> joins_;  // by stream
  std::vector<cudaGraphExec_t> graphs_;
  std::vector<CudaEvent> ends_;  // by graph
  std::size_t ended_ = 0;
};

}  // namespace rehearse
