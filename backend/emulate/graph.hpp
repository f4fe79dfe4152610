// A cluster as hosts, switches and cables that can be built: derived from its routes alone.
#pragma once

#include <string>
#include <vector>

#include "topologies/cluster.hpp"

namespace rehearse {

// A transfer that the network must carry, and its answers back; rail as in Cluster::route.
struct Conversation {
  Endpoint from = 0, to = 0;
  int rail = -1;
};

struct EmulationGraph {
  // A host is where ranks live; a switch only forwards. Endpoints with no link between them that is built
  // stand on one host and talk over its loopback.
  struct Vertex {
    std::string name;                 // "node0.gpu0", "node1.gpu0+node1.cpu", "leaf0", "switch2"
    std::vector<Endpoint> endpoints;  // empty: a switch
  };
  struct Direction {
    std::string name;      // Cluster::link_name; empty: none (a port between an endpoint and a switch)
    double bandwidth = 0;  // bytes/s; 0: not limited
    double latency_s = 0;
  };
  struct Cable {
    std::string name;  // "node3.nic0", "leaf0-spine1"
    int a = 0, b = 0;  // vertices
    Direction forth, back;
  };
  // At `vertex`, packets from one address to another leave through a cable.
  struct Forward {
    int vertex = 0;
    std::string source, destination;
    int cable = 0;
    bool first = false;    // they start here; then:
    double bandwidth = 0;  // of the slowest link on their way that is built, bytes/s; 0: none is limited
    double latency_s = 0;  // of the links on their way that are built
  };
  // A link that is not built: faster than can be emulated.
  struct LeftOut {
    std::string name;
    double bandwidth = 0;
  };

  std::vector<Endpoint> endpoints;
  std::vector<int> rails;  // that conversations use
  std::vector<Vertex> vertices;
  std::vector<Cable> cables;
  std::vector<Forward> forwards;  // by vertex, destination, source
  std::vector<LeftOut> left_out;
  double built_latency_s = 0;     // the most that links which are built add to a route
  double left_out_latency_s = 0;  // the most that the others would add

  int vertex_of(Endpoint e) const;  // std::out_of_range if the graph does not have it
  // "10.R.X.Y": R tells the rail (0: each end's own NIC), X.Y the endpoint. std::out_of_range as above.
  std::string address(Endpoint e, int rail = -1) const;
};

// The part of the cluster that these conversations use; empty: every endpoint talks to every other, each by
// its own NIC. Links above `most_bandwidth` (bytes/s) are not built: their ends are one vertex.
// Vertices: the tail of a link is the head of the one before it on a route, and the two directions of a cable
// have the same ends. InputError for endpoints that the cluster does not have; RunError for more than
// 65,000 endpoints or 254 rails, and for a route that passes one vertex twice.
EmulationGraph emulation_graph(const Cluster& cluster, std::vector<Endpoint> endpoints,
                               const std::vector<Conversation>& conversations, double most_bandwidth);

// For people and tests: a line for each vertex, cable and forward that differs from others.
std::string describe(const EmulationGraph& graph);

}  // namespace rehearse
