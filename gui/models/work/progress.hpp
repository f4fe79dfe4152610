// Tells how far work on another thread is, and cancels it.
#pragma once

#include <atomic>

namespace rehearse::gui {

struct Progress {
  std::atomic<double> share = 0;        // completed share, 0 to 1
  std::atomic<bool> cancelled = false;  // set to request cancellation
};

// Thrown by cancelled work.
struct Cancelled {};

}  // namespace rehearse::gui
