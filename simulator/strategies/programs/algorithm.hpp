// Chooses the algorithm of an all-reduce.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "simulator/collectives/cost.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

class AlgorithmChoice {
public:
  explicit AlgorithmChoice(const Scenario& scenario) : scenario_(scenario) {}

  // Returns the scenario's algorithm. For `auto`, returns the fitting algorithm that takes the least time for
  // `bytes` bytes when the group has the cluster to itself. Throws InputError if the scenario's algorithm
  // does not fit the group.
  Algorithm of(const std::vector<Endpoint>& members, double bytes);
  // Like of(), but falls back to a ring if the scenario's algorithm does not fit: for groups other than the
  // one it was chosen for.
  Algorithm or_ring(const std::vector<Endpoint>& members, double bytes);

private:
  Algorithm fastest(const std::vector<Endpoint>& members, double bytes);

  const Scenario& scenario_;
  std::map<std::vector<Endpoint>, std::vector<PlanOnNetwork>> plans_;  // by group: all that fit
};

}  // namespace rehearse
