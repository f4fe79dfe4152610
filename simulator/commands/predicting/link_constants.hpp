// Lists the uncertain constants of a cluster's links.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulator/costs/engine_options.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

struct LinkConstant {
  std::string name;  // "dgx-a100 bandwidth inside nodes"
  Basis basis = Basis::guess;
  double deviation = 0;                              // standard deviation of ln(constant)
  bool inside_nodes = false, between_nodes = false;  // links to which it applies
  // Changes a simulation as if the constant were better by this factor (below 1: worse).
  std::function<void(std::shared_ptr<const Cluster>& cluster, EngineOptions& options, double better)> change;
};

// Returns the constants that are uncertain under the protocol (simulator/costs/link_uncertainty.hpp).
std::vector<LinkConstant> link_constants(const Cluster& cluster, const Protocol& protocol);

}  // namespace rehearse
