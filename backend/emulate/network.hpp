// An emulated cluster: a network namespace for each host and switch, joined by cables with limited rates.
#pragma once

#include <string>
#include <vector>

#include "backend/emulate/graph.hpp"
#include "backend/emulate/namespaces.hpp"

namespace rehearse {

// Why this machine cannot emulate a cluster, in one line; empty if it can.
std::string emulation_missing();

// It stands as long as this object, and never longer than its process and those that entered it: the
// namespaces have neither names nor files, and nothing is made outside them.
class EmulatedNetwork {
public:
  // RunError, in one line: no root, no `ip` or `tc`, or the command that failed and what it said.
  explicit EmulatedNetwork(EmulationGraph graph);

  const EmulationGraph& graph() const { return graph_; }
  // What the cluster has and this network has not, a line each: links too fast, latencies.
  const std::vector<std::string>& left_out() const { return left_out_; }

  // Whether links delay as the cluster's do; else only by what this machine takes.
  bool latencies() const { return netem_; }

  // Brings the calling process into the network as the endpoint's host. For a forked child, before it starts
  // threads: it lets go of the other namespaces, and is killed when the thread that forked it ends, so that
  // nothing is left behind. std::out_of_range if there is no such endpoint.
  void enter(Endpoint endpoint);
  // Where the endpoint listens for transfers of this rail. Who connects there binds to its own address of
  // the same rail.
  std::string address(Endpoint endpoint, int rail = -1) const { return graph_.address(endpoint, rail); }

  // By the name of a cable, or of one of its directions: both go down. InputError if it was not built.
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
