// Wall time of work, without what the scheduler gave to other programs meanwhile.
#pragma once

#include <functional>

namespace rehearse {

// The kernel counts how long this thread was ready to run and had to wait (run_delay, the second number of
// /proc/thread-self/schedstat, Linux); without that file nothing is taken off.
class Stopwatch {
public:
  Stopwatch();
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Seconds that `work` took on this thread.
  double time_s(const std::function<void()>& work);
  // Of all that was timed so far, the share that others had the processor and that was taken off.
  double taken_off() const { return total_s_ > 0 ? waited_s_ / total_s_ : 0; }

private:
  double waited_so_far_s() const;
  int file_ = -1;
  double total_s_ = 0, waited_s_ = 0;
};

}  // namespace rehearse
