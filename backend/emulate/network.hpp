// Builds an emulated cluster: a network namespace for each host and switch, connected by cables with limited
// rates.
#pragma once

#include <string>
#include <vector>

#include "backend/emulate/graph.hpp"
#include "backend/emulate/namespaces.hpp"

namespace rehearse {

// Returns the reason why this machine cannot emulate a cluster, in one line; empty if it can.
std::string emulation_missing();

// An emulated network, which exists as long as this object and never longer than its process and those that
// entered it: the namespaces have neither names nor files, and nothing is created outside of them.
class EmulatedNetwork {
public:
  // Throws RunError with one line: no root, no `ip` or `tc`, or the command that failed and its output.
  explicit EmulatedNetwork(EmulationGraph graph);

  const EmulationGraph& graph() const { return graph_; }
  // Returns what the cluster has and this network lacks, one line each: links that are too fast, latencies.
  const std::vector<std::string>& left_out() const { return left_out_; }

  // Returns whether links have the cluster's latencies; else they only have those of this machine.
  bool latencies() const { return netem_; }

  // Moves the calling process into the network, on the endpoint's host. For a forked child, before it starts
  // threads: closes the other namespaces, and makes the kernel kill the child when the thread that forked it
  // ends, so that nothing is left behind. Throws std::out_of_range if there is no such endpoint.
  void enter(Endpoint endpoint);
  // Returns the address at which the endpoint listens for transfers of this rail. Peers that connect to it
  // bind to their own address of the same rail.
  std::string address(Endpoint endpoint, int rail = -1) const { return graph_.address(endpoint, rail); }

  // Take the name of a cable or of one of its directions; both directions change. Throw InputError if it was
  // not built.
  void set_link_down(const std::string& name);
  void set_link_up(const std::string& name);

private:
  void make_cables();
  void configure(int vertex);
  void shape(int vertex);
  std::vector<std::string> routes(int vertex, bool with_rules) const;
  int cable_named(const std::string& name) const;
  void tell_left_out();

  EmulationGraph graph_;
  std::vector<Descriptor> spaces_;  // by vertex
  std::vector<std::string> left_out_;
  bool netem_ = false;
  int owner_ = 0;
};

}  // namespace rehearse
