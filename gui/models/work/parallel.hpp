// Helps to process large columns: with a few threads and on large memory pages.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace rehearse::gui {

// Calls f(0) ... f(count - 1) in up to `threads` threads. Rethrows the first exception.
template <typename F>
void in_parallel(std::size_t count, std::size_t threads, F&& f) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failed;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) f(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failed) failed = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < threads && i < count; ++i) others.emplace_back(work);
    work();
  }
  if (failed) std::rethrow_exception(failed);
}

// Returns how many threads are worthwhile for that many work items, at most 4.
inline std::size_t threads_for(std::size_t work) {
  constexpr std::size_t kWorthAThread = 100'000, kMost = 4;
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  return work < kWorthAThread ? 1 : std::min(cores, kMost);
}

// Requests large pages for memory that is about to be filled entirely; faulting in hundreds of thousands of
// small pages takes seconds.
inline void prefer_large_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  constexpr std::uintptr_t kPage = std::uintptr_t{1} << 21;
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + kPage - 1) / kPage * kPage;
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + bytes) / kPage * kPage;
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

template <typename T>
void reserve_large(std::vector<T>& column, std::size_t count) {
  column.reserve(count);
  prefer_large_pages(column.data(), count * sizeof(T));
}
inline void reserve_large(std::vector<bool>& column, std::size_t count) {
  column.reserve(count);
}

}  // namespace rehearse::gui
