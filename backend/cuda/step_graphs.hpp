// The steps of a rank as CUDA graphs: captured one by one before anything runs, then launched one after the
// other.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <mutex>
#include <vector>

#include "backend/cuda/cuda_clock.hpp"

namespace rehearse {

// Each stream has a thread of its own, which calls begin() and end() for every step. A step begins when the
// one before has ended on all streams, as graphs that are launched onto one stream do.
class StepGraphs {
public:
  explicit StepGraphs(std::vector<cudaStream_t> streams);
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // Returns when all streams are being captured. RunError after abort().
  void begin(int stream);
  // Returns when the step has become a graph.
  void end(int stream);
  int step() const;  // of begin() and end(), from 0 on
  // Launches all graphs; the first call does. All streams have ended their last step.
  void launch();
  // How many of the launched graphs have ended, and how many there are; 0 and 0 before launch().
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
