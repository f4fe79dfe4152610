#include "backend/host/stopwatch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>

namespace rehearse {
namespace {

// Reads how long this thread has waited for a processor, in seconds.
class RunDelay {
public:
  RunDelay() : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  ~RunDelay() {
    if (file_ >= 0) close(file_);
  }
  RunDelay(const RunDelay&) = delete;
  RunDelay& operator=(const RunDelay&) = delete;

  double seconds() const {
    std::array<char, 96> text{};
    if (file_ < 0 || pread(file_, text.data(), text.size() - 1, 0) <= 0) return 0;
    char* second = nullptr;
    (void)std::strtoull(text.data(), &second, 10);
    return 1e-9 * static_cast<double>(std::strtoull(second, nullptr, 10));
  }

private:
  int file_ = -1;
};

}  // namespace

Timed time_on_processor(const std::function<void()>& work) {
  const RunDelay delay;
  const double waited_before_s = delay.seconds();
  const auto begin = std::chrono::steady_clock::now();
  work();
  const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double waited_s = std::clamp(delay.seconds() - waited_before_s, 0.0, wall_s);
  return {wall_s - waited_s, waited_s};
}

}  // namespace rehearse
