// Holds the readers of a storage to its bandwidth: all of them take turns at queues that serve at that rate.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "topologies/cluster.hpp"

namespace rehearse {

// Queues in memory that this process shares with those that it forks later, on one machine.
class RateQueues {
public:
  explicit RateQueues(std::size_t count);
  RateQueues(const RateQueues&) = delete;
  RateQueues& operator=(const RateQueues&) = delete;
  ~RateQueues();

  // Appends `bytes` to a queue that serves `bytes_per_s`, at time `now_s` of the monotonic clock; returns
  // when they have been served. Several threads and processes may call it at a time.
  double serve(std::size_t queue, double now_s, double bytes, double bytes_per_s);

private:
  using Free = std::atomic<std::int64_t>;  // when a queue will be empty, in nanoseconds
  static_assert(Free::is_always_lock_free);
  std::size_t bytes_;
  std::span<Free> free_;
};

// The queues of a storage that one of its readers passes.
struct StoragePath {
  struct Leg {
    std::size_t queue = 0;
    double bytes_per_s = 0;
  };
  std::vector<Leg> legs;
  static std::size_t queues(const Cluster& cluster) {  // of all readers
    return 1 + static_cast<std::size_t>(cluster.nodes());
  }
};

// Readers that take turns: those on one node, and all of them.
struct StorageReaders {
  int of_node = 1, of_all = 1;
};

// Returns the path of a device to the cluster's first storage: to the drives of its node or, if nodes share
// the storage, through the node's own link to the servers. Readers that share no queues each get an equal
// part of each rate; `apart` tells how many readers there are.
StoragePath storage_path(const Cluster& cluster, int endpoint, const StorageReaders& apart = {});

}  // namespace rehearse
