#include "simulator/engine/progress.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "models/text/error.hpp"

namespace rehearse {

// Written by one process and read by another.
struct SharedProgress::Counts {
  std::atomic<int> stage{0};
  std::atomic<std::int64_t> done{0}, total{0};
};

namespace {

// Belongs to this process, which simulates at most once.
void* shared_counts = nullptr;

}  // namespace

SharedProgress::SharedProgress() {
  void* const memory =
      mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw RunError(fmt::format("no memory can be shared with a simulation: {}", std::strerror(errno)));
  counts_ = new (memory) Counts;
}

SharedProgress::~SharedProgress() {
  munmap(counts_, sizeof(Counts));
}

void SharedProgress::count_here() const {
  shared_counts = counts_;
}

SimulationProgress SharedProgress::read() const {
  // The stage may change between the reads, so a count of the previous stage is limited to the new total.
  SimulationProgress progress;
  progress.stage = static_cast<SimulationStage>(counts_->stage.load());
  progress.total = counts_->total.load();
  progress.done = std::min(counts_->done.load(), progress.total);
  return progress;
}

void begin_stage(SimulationStage stage, std::int64_t total) {
  if (shared_counts == nullptr) return;
  auto& counts = *static_cast<SharedProgress::Counts*>(shared_counts);
  counts.done = 0;
  counts.total = total;
  counts.stage = static_cast<int>(stage);
}

void advance_stage(std::int64_t count) {
  if (shared_counts == nullptr) return;
  auto& done = static_cast<SharedProgress::Counts*>(shared_counts)->done;
  done.store(done.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

}  // namespace rehearse
