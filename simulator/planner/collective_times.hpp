// Computes how long a collective takes when it has the network to itself, which is a lower bound of its time
// in a simulation.
#pragma once

#include <map>
#include <vector>

#include "simulator/collectives/cost.hpp"
#include "simulator/costs/engine_options.hpp"
#include "simulator/costs/interference.hpp"

namespace rehearse {

// Caches which links of the cluster the collectives of a group use. `cluster` and `options` must outlive the
// object.
class CollectiveTimes {
public:
  CollectiveTimes(const Cluster& cluster, const EngineOptions& options)
      : cluster_(cluster), options_(options) {}

  // Returns the seconds of a collective of `bytes` (see Collective::bytes) over `members`; 0 for a group of
  // one. `automatic` is the fastest algorithm that fits. Rings and trees: collectives/cost.hpp. For an
  // all-to-all among more than 64 members, only what the members of the first node send is counted.
  double alone_s(CollectiveKind kind, Algorithm algorithm, int channels, const std::vector<Endpoint>& members,
                 double bytes);
  // Returns the load that a ring over `members` puts on a device while it moves `bytes` in `seconds`.
  DeviceLoad ring_load(CollectiveKind kind, int channels, const std::vector<Endpoint>& members, double bytes,
                       double seconds);
  // Returns the seconds of a message of `bytes`, alone on the network.
  double message_s(Endpoint from, Endpoint to, double bytes);

private:
  struct Pairs {
    TransferShape shape;
    double inverse_bandwidth = 0;  // seconds per byte that each member sends to each other member
  };
  using Key = std::pair<std::vector<Endpoint>, int>;  // members and channels
  const std::vector<PlanOnNetwork>& plans(const Key& key, Algorithm algorithm);
  const PlanOnNetwork& ring(const Key& key, CollectiveKind kind);
  const Pairs& pairs(const Key& key);

  const Cluster& cluster_;
  const EngineOptions& options_;
  std::map<std::pair<Key, Algorithm>, std::vector<PlanOnNetwork>> plans_;
  std::map<std::pair<Key, CollectiveKind>, PlanOnNetwork> rings_;
  std::map<Key, Pairs> pairs_;
};

}  // namespace rehearse
