// Measures the wall time of work, without the time that the scheduler gives to other programs.
#pragma once

#include <functional>

#include "backend/training/arithmetic.hpp"

namespace rehearse {

// Times `work` on this thread. The kernel counts how long a thread was ready to run but had to wait
// (run_delay, the second number of /proc/thread-self/schedstat, Linux); without that file nothing is
// subtracted.
Timed time_on_processor(const std::function<void()>& work);

}  // namespace rehearse
