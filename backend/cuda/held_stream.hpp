// Holds back a stream until all of its next work has been issued, so that timings there measure the GPU and
// not the host.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

namespace rehearse {

// Holds what is issued after the constructor until release() or the destructor is called, and at most 50 ms,
// so that a call which waits for the stream, as cudaFree does, cannot block forever. Throws RunError if CUDA
// fails.
class HeldStream {
public:
  // A stream accepts about 1024 operations before issuing blocks; a call may issue several.
  static constexpr long kMostOperations = 256;

  explicit HeldStream(cudaStream_t stream);
  ~HeldStream() { release(); }
  HeldStream(const HeldStream&) = delete;
  HeldStream& operator=(const HeldStream&) = delete;
  void release() const;

private:
  struct Gate;
  std::shared_ptr<Gate> gate_;
};

}  // namespace rehearse
