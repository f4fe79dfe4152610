#include "simulator/engine/bell.hpp"

namespace rehearse {

void Bell::wait() {
  waiting = true;
  semaphore->acquire();
  waiting = false;
}

bool Bell::wait_for(double seconds) {
  waiting = true;
  const bool in_vain = semaphore->acquire_timeout(seconds);
  waiting = false;
  return in_vain;
}

void Bell::ring() {
  if (!waiting) return;
  waiting = false;
  semaphore->release();
}

}  // namespace rehearse
