// Wall time of work, without what the scheduler gave to other programs meanwhile.
#pragma once

#include <functional>

#include "backend/training/arithmetic.hpp"

namespace rehearse {

// Of `work` on this thread. The kernel counts how long a thread was ready to run and had to wait (run_delay,
// the second number of /proc/thread-self/schedstat, Linux); without that file nothing is taken off.
Timed time_on_processor(const std::function<void()>& work);

}  // namespace rehearse
