#include "tests/stand_in/memory.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/stand_in/settings.hpp"
#include "tests/stand_in/streams.hpp"

namespace stand_in {
namespace {

// All bits set, which is NaN in fp32, fp16 and bf16.
constexpr int kPoison = 0xff;
constexpr std::size_t kGuard = 256, kAlignment = 256;

struct Allocation {
  std::size_t bytes = 0;
  int device = 0;
  bool freed = false;
};

std::mutex mutex;
std::map<std::uintptr_t, Allocation> allocations;           // including freed ones, to detect use after free
std::map<int, std::size_t> used;                            // bytes by device
constexpr std::size_t kMostFreed = std::size_t{512} << 20;  // retained bytes; beyond it the oldest are freed
std::deque<std::uintptr_t> freed;
std::size_t freed_bytes = 0;

std::uintptr_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

std::byte* memory_at(std::uintptr_t at) {
  return reinterpret_cast<std::byte*>(at);  // NOLINT(performance-no-int-to-ptr): an address of an allocation
}

bool is_poison(std::byte byte) {
  return byte == static_cast<std::byte>(kPoison);
}

void expect_guards(std::uintptr_t at, const Allocation& allocation) {
  const std::byte* first = memory_at(at);
  if (!std::all_of(first - kGuard, first, is_poison) ||
      !std::all_of(first + allocation.bytes, first + allocation.bytes + kGuard, is_poison))
    violation(fmt::format("something was written beside an allocation of {} bytes", allocation.bytes));
}

}  // namespace

void expect_range(const void* first, std::size_t bytes, const char* call) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex);
  auto after = allocations.upper_bound(address(first));
  if (after != allocations.begin()) {
    const auto& [at, allocation] = *--after;
    if (address(first) + bytes <= at + allocation.bytes) {
      if (allocation.freed) violation(fmt::format("{} uses memory that was freed", call));
      return;
    }
  }
  violation(fmt::format("{} uses {} bytes that do not all lie in one allocation", call, bytes));
}

}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  const int device = current_device("cudaMalloc");
  const std::lock_guard lock(stand_in::mutex);
  if (used[device] + bytes > settings().memory_bytes) return cudaErrorMemoryAllocation;
  void* memory = nullptr;
  const std::size_t all = bytes + 2 * kGuard + kAlignment;
  if (posix_memalign(&memory, kAlignment, all) != 0) return cudaErrorMemoryAllocation;
  std::memset(memory, kPoison, all);
  *pointer = static_cast<std::byte*>(memory) + kGuard;
  allocations[address(*pointer)] = {bytes, device, false};
  used[device] += bytes;
  count(&Counts::allocations, 1);
  return cudaSuccess;
}

// Waits for all streams first, as CUDA does.
cudaError_t cudaFree(void* pointer) {
  (void)current_device("cudaFree");
  if (pointer == nullptr) return cudaSuccess;
  drain_all();
  const std::lock_guard lock(stand_in::mutex);
  const auto found = allocations.find(address(pointer));
  if (found == allocations.end() || found->second.freed)
    violation("cudaFree of memory that was not allocated, or was freed before");
  expect_guards(found->first, found->second);
  std::memset(pointer, kPoison, found->second.bytes);
  found->second.freed = true;
  used[found->second.device] -= found->second.bytes;
  count(&Counts::allocations, -1);
  freed.push_back(found->first);
  freed_bytes += found->second.bytes;
  while (freed_bytes > kMostFreed) {
    freed_bytes -= allocations[freed.front()].bytes;
    allocations.erase(freed.front());
    std::free(memory_at(freed.front()) - kGuard);
    freed.pop_front();
  }
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const int device = current_device("cudaMemGetInfo");
  const std::lock_guard lock(stand_in::mutex);
  *total = settings().memory_bytes;
  *free = *total - used[device];
  return cudaSuccess;
}

cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes) {
  (void)current_device("cudaMemset");
  expect_range(pointer, bytes, "cudaMemset");
  push(cudaStreamLegacy, [=] { std::memset(pointer, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, cudaStream_t stream) {
  expect_stream(stream, "cudaMemsetAsync");
  expect_range(pointer, bytes, "cudaMemsetAsync");
  push(stream, [=] { std::memset(pointer, value, bytes); });
  return cudaSuccess;
}

// Host memory is pageable: copies to the device read its bytes before the call returns; copies from the
// device have written them when the call returns (CUDA Runtime API, "API synchronization behavior").
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  expect_stream(stream, "cudaMemcpyAsync");
  if (kind != cudaMemcpyDeviceToHost) expect_range(to, bytes, "cudaMemcpyAsync");
  if (kind != cudaMemcpyHostToDevice) expect_range(from, bytes, "cudaMemcpyAsync");
  if (kind == cudaMemcpyHostToDevice) {
    const auto* first = static_cast<const std::byte*>(from);
    const auto taken = std::make_shared<std::vector<std::byte>>(first, first + bytes);
    push(stream, [=] { std::copy(taken->begin(), taken->end(), static_cast<std::byte*>(to)); });
    return cudaSuccess;
  }
  push(stream, [=] { std::memmove(to, from, bytes); });
  return kind == cudaMemcpyDeviceToHost ? cudaStreamSynchronize(stream) : cudaSuccess;
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return posix_memalign(pointer, kAlignment, bytes) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void* pointer) {
  std::free(pointer);
  return cudaSuccess;
}

}  // extern "C"
