// What is uncertain about the links of a cluster.
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
  bool inside_nodes = false, between_nodes = false;  // of which links it is
  // Changes a simulation as if the constant were this many times better (below 1: worse).
  std::function<void(std::shared_ptr<const Cluster>& cluster, EngineOptions& options, double better)> change;
};

// Those that are uncertain under the protocol (simulator/costs/link_uncertainty.hpp).
std::vector<LinkConstant> link_constants(const Cluster& cluster, const Protocol& protocol);

}  // namespace rehearse
