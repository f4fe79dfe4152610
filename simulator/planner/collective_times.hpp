// How long a collective takes that has the network to itself: a lower bound of what it takes in a simulation.
#pragma once

#include <map>
#include <vector>

#include "simulator/collectives/cost.hpp"
#include "simulator/costs/engine_options.hpp"
#include "simulator/costs/interference.hpp"

namespace rehearse {

// Remembers how groups lie on the cluster's links. `cluster` and `options` must outlive it.
class CollectiveTimes {
public:
  CollectiveTimes(const Cluster& cluster, const EngineOptions& options)
      : cluster_(cluster), options_(options) {}

  // Seconds of a collective of `bytes` (see Collective::bytes) over `members`; 0 for a group of one.
  // `automatic` is the fastest algorithm that fits. Rings and trees: collectives/cost.hpp. Of an all-to-all
  // among more than 64 members only what the members of the first node send is counted.
  double alone_s(CollectiveKind kind, Algorithm algorithm, int channels, const std::vector<Endpoint>& members,
                 double bytes);
  // What a ring over `members` takes from a device while it moves `bytes` in `seconds`.
  DeviceLoad ring_load(CollectiveKind kind, int channels, const std::vector<Endpoint>& members, double bytes,
                       double seconds);
  // A message of `bytes`, alone.
  double message_s(Endpoint from, Endpoint to, double bytes);

private:
  struct Pairs {
    TransferShape shape;
    double inverse_bandwidth = 0;  // s for a byte that each member sends to each other one
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
