#include "backend/loading/rate_queues.hpp"

#include <fmt/format.h>

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <new>

#include "models/text/error.hpp"

namespace rehearse {

// mmap() returns memory of zeros: all queues are empty.
RateQueues::RateQueues(std::size_t count) : bytes_(std::max<std::size_t>(count, 1) * sizeof(Free)) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw RunError(fmt::format("no memory for {} queues of a storage: {}", count, std::strerror(errno)));
  auto* first = static_cast<Free*>(memory);
  for (std::size_t i = 0; i < count; ++i) new (first + i) Free(0);
  free_ = {first, count};
}

RateQueues::~RateQueues() {
  munmap(free_.data(), bytes_);
}

double RateQueues::serve(std::size_t queue, double now_s, double bytes, double bytes_per_s) {
  Free& free = free_[queue];
  const auto now = static_cast<std::int64_t>(std::llround(now_s * 1e9));
  const auto takes = static_cast<std::int64_t>(std::llround(bytes / bytes_per_s * 1e9));
  std::int64_t seen = free.load(std::memory_order_relaxed), end = 0;
  do end = std::max(seen, now) + takes;
  while (!free.compare_exchange_weak(seen, end, std::memory_order_relaxed));
  return static_cast<double>(end) * 1e-9;
}

StoragePath storage_path(const Cluster& cluster, int endpoint, const StorageReaders& apart) {
  const Storage& storage = cluster.storage();
  StoragePath path;
  const std::size_t of_node = 1 + static_cast<std::size_t>(cluster.node_of(endpoint));
  const auto pass = [&](std::size_t queue, double bytes_per_s, int readers) {
    if (bytes_per_s > 0) path.legs.push_back({queue, bytes_per_s / std::max(1, readers)});
  };
  switch (storage.kind) {
    case Storage::Kind::none:
      break;
    case Storage::Kind::local:
      pass(of_node, storage.read_bandwidth, apart.of_node);
      break;
    case Storage::Kind::shared:
      pass(0, storage.read_bandwidth, apart.of_all);
      pass(of_node, storage.client_bandwidth, apart.of_node);
      break;
  }
  return path;
}

}  // namespace rehearse
