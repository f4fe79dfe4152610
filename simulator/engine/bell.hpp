// The bell of an actor: the actor waits for it, and others ring it.
#pragma once

#include "simulator/engine/simgrid.hpp"

namespace rehearse {

struct Bell {
  sg::s4u::SemaphorePtr semaphore = sg::s4u::Semaphore::create(0);
  bool waiting = false;

  void wait();
  bool wait_for(double seconds);  // returns true if nobody rang in this time
  void ring();                    // no effect if nobody waits
};

}  // namespace rehearse
