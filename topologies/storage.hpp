// Describes the storage from which nodes read their data, and to which they write checkpoints.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

struct Storage {
  std::string name = "storage";  // of its endpoints: "storage0"; drives are "node3.drive"
  enum class Kind {
    none,
    local,   // drives (or memory) of each node
    shared,  // servers that all nodes use together
  } kind = Kind::none;
  // In bytes/s: of the drives of one node, or of all servers together. Local: 0 means those of the node's
  // NVMe.
  double read_bandwidth = 0, write_bandwidth = 0;
  double operations_bandwidth = 0;  // that its operations a second allow reading; 0: unlimited
  // Shared, with a network of its own: bytes/s per direction of one node; 0: unlimited.
  double client_bandwidth = 0;
  // Shared, over the cluster's fabric: nodes that the servers add to it; 0: the storage has its own network.
  int servers = 0;
};
inline constexpr std::array<std::string_view, 3> kStorageKindNames = {"none", "local", "shared"};

class Cluster;

// Returns the cluster with its storages, in order. Those that have servers on the fabric own the last of the
// server nodes of `network`, which no longer count as such.
std::shared_ptr<const Cluster> with_storages(std::shared_ptr<const Cluster> network,
                                             const std::vector<Storage>& storages);

}  // namespace rehearse
