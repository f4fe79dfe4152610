// Counts the free multiprocessors of this process's GPU. Blocks that wait for peers occupy theirs until they
// end.
#pragma once

#include <atomic>
#include <mutex>

#include "tests/stand_in/shared.hpp"

namespace stand_in {

inline constexpr int kMultiprocessors = 132;  // as an H100 SXM5 has

class Multiprocessors {
public:
  // Waits until enough multiprocessors are free and occupies them. Returns false if `stopped` is set first.
  bool take(int blocks, const std::atomic<bool>& stopped) {
    return wait_until(
        [&] {
          const std::lock_guard lock(mutex_);
          if (free_ < blocks) return false;
          free_ -= blocks;
          return true;
        },
        stopped);
  }
  void give(int blocks) {
    const std::lock_guard lock(mutex_);
    free_ += blocks;
  }

private:
  std::mutex mutex_;
  int free_ = kMultiprocessors;
};

}  // namespace stand_in
