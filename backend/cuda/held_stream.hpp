// A stream that waits until all of its next work has been issued, so that what is timed there is the GPU's
// time and not the host's.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

namespace rehearse {

// What is issued after the constructor begins when release() is called or this ends; after 50 ms in any case,
// so that a call which waits for the stream, as cudaFree does, cannot wait for ever. RunError if CUDA fails.
class HeldStream {
public:
  // A stream takes about 1024 operations before issuing waits for it; a call may issue several.
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
