// Builds what SimGrid simulates: the links that flows use, and a pair of hosts with a route for every flow
// class.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulator/costs/engine_options.hpp"
#include "simulator/engine/layout.hpp"
#include "simulator/engine/simgrid.hpp"

namespace rehearse {

// Starts SimGrid, which is possible once per process.
sg::s4u::Engine make_engine(bool on_threads);

class Platform {
public:
  // `links_change`: events can make any link the slowest of its routes; without them, links that never limit
  // a flow are left out. `on_threads`: actors run as threads, see sanitized_stacks.hpp.
  Platform(const Layout& layout, const std::vector<bool>& simulated_flows, bool links_change,
           bool on_threads);

  sg::s4u::Engine& engine() { return engine_; }
  sg::s4u::Host* home() { return hosts_[0]; }  // the host of all actors; computation does not load it
  // Starts sending `bytes` on a flow class; the weights in its route make one flow represent the entire
  // class.
  sg::s4u::CommPtr start(int flow, double bytes);
  std::size_t links() const { return links_.size(); }
  std::size_t flows() const { return pair_.size(); }
  // The link classes that can limit a flow, and how long it takes for each byte while no other flow uses
  // them.
  const std::vector<int>& route(int flow) const { return routes_[flow].links; }
  double s_per_byte_alone(int flow) const { return routes_[flow].s_per_byte; }
  void scale_link(int link_class, double factor);  // factor on its initial bandwidth
  void kill_link(int link_class);

private:
  struct Route {
    std::vector<int> links;
    double s_per_byte = 0;
  };

  sg::s4u::Engine engine_;
  std::vector<sg::s4u::Host*> hosts_;
  std::vector<sg::s4u::Link*> links_;  // by link class; null: limits no simulated flow
  std::vector<double> link_bandwidth_;
  std::vector<int> pair_;      // by flow class: number of its pair of hosts; -1: not simulated
  std::vector<Route> routes_;  // by flow class; empty: not simulated
};

}  // namespace rehearse
