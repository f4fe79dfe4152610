#include "backend/cuda/held_stream.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "backend/cuda/check.hpp"

namespace rehearse {

struct HeldStream::Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
};

// CUDA's reference to the gate lives until CUDA has called the function.
HeldStream::HeldStream(cudaStream_t stream) : gate_(std::make_shared<Gate>()) {
  auto seen = std::make_unique<std::shared_ptr<Gate>>(gate_);
  const auto wait = [](void* data) {
    constexpr auto kMost = std::chrono::milliseconds(50);
    const std::unique_ptr<std::shared_ptr<Gate>> own(static_cast<std::shared_ptr<Gate>*>(data));
    Gate& gate = **own;
    std::unique_lock lock(gate.mutex);
    gate.changed.wait_for(lock, kMost, [&] { return gate.open; });
  };
  CHECKED(cudaLaunchHostFunc(stream, wait, seen.get()));
  (void)seen.release();
}

void HeldStream::release() const {
  const std::lock_guard lock(gate_->mutex);
  gate_->open = true;
  gate_->changed.notify_all();
}

}  // namespace rehearse
