#include "backend/calibrate/stopwatch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>

namespace rehearse {

Stopwatch::Stopwatch() : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}

Stopwatch::~Stopwatch() {
  if (file_ >= 0) close(file_);
}

double Stopwatch::waited_so_far_s() const {
  std::array<char, 96> text{};
  if (file_ < 0 || pread(file_, text.data(), text.size() - 1, 0) <= 0) return 0;
  char* second = nullptr;
  (void)std::strtoull(text.data(), &second, 10);
  return 1e-9 * static_cast<double>(std::strtoull(second, nullptr, 10));
}

double Stopwatch::time_s(const std::function<void()>& work) {
  const double waited_before_s = waited_so_far_s();
  const auto begin = std::chrono::steady_clock::now();
  work();
  const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double waited_s = std::clamp(waited_so_far_s() - waited_before_s, 0.0, wall_s);
  total_s_ += wall_s;
  waited_s_ += waited_s;
  return wall_s - waited_s;
}

}  // namespace rehearse
