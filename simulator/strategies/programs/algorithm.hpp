// By which algorithm an all-reduce goes.
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

  // The scenario's algorithm; `auto`: of those that fit the group, the one that takes the least time alone on
  // this cluster for so many bytes. InputError if the algorithm does not fit.
  Algorithm of(const std::vector<Endpoint>& members, double bytes);
  // The same, or a ring if it does not fit: for a group that is not the one the algorithm was chosen for.
  Algorithm or_ring(const std::vector<Endpoint>& members, double bytes);

private:
  Algorithm fastest(const std::vector<Endpoint>& members, double bytes);

  const Scenario& scenario_;
  std::map<std::vector<Endpoint>, std::vector<PlanOnNetwork>> plans_;  // of all that fit a group
};

}  // namespace rehearse
