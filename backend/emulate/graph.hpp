// Derives hosts, switches and cables that can be built from a cluster, using its routes alone.
#pragma once

#include <string>
#include <vector>

#include "topologies/cluster.hpp"

namespace rehearse {

// A transfer that the network must carry, and the answers to it; rail as in Cluster::route.
struct Conversation {
  Endpoint from = 0, to = 0;
  int rail = -1;
};

struct EmulationGraph {
  // Hosts run ranks; switches only forward. Endpoints that have no built link between them share a host and
  // communicate over its loopback.
  struct Vertex {
    std::string name;                 // "node0.gpu0", "node1.gpu0+node1.cpu", "leaf0", "switch2"
    std::vector<Endpoint> endpoints;  // empty: a switch
  };
  struct Direction {
    std::string name;      // Cluster::link_name; empty: none (a port between an endpoint and a switch)
    double bandwidth = 0;  // bytes/s; 0: unlimited
    double latency_s = 0;
  };
  struct Cable {
    std::string name;  // "node3.nic0", "leaf0-spine1"
    int a = 0, b = 0;  // vertices
    Direction forth, back;
  };
  // Packets from one address to another leave `vertex` through a cable.
  struct Forward {
    int vertex = 0;
    std::string source, destination;
    int cable = 0;
    bool first = false;    // packets start here; then:
    double bandwidth = 0;  // of the slowest built link on the route, bytes/s; 0: unlimited
    double latency_s = 0;  // sum over the built links on the route
  };
  // A link that is not built, because it is faster than can be emulated.
  struct LeftOut {
    std::string name;
    double bandwidth = 0;
  };

  std::vector<Endpoint> endpoints;
  std::vector<int> rails;  // used by conversations
  std::vector<Vertex> vertices;
  std::vector<Cable> cables;
  std::vector<Forward> forwards;  // by vertex, destination, source
  std::vector<LeftOut> left_out;
  double built_latency_s = 0;     // largest sum over the built links of a route
  double left_out_latency_s = 0;  // largest sum over the other links of a route

  int vertex_of(Endpoint e) const;  // throws std::out_of_range if the graph does not have it
  // Returns "10.R.X.Y", where R encodes the rail (0: each end's own NIC) and X.Y the endpoint. Throws
  // std::out_of_range if the graph does not have the endpoint.
  std::string address(Endpoint e, int rail = -1) const;
};

// Derives the part of the cluster that these conversations use; empty: every endpoint talks to every other
// one, each by its own NIC. Links above `most_bandwidth` (bytes/s) are not built: their ends form one vertex.
// Vertices follow from two rules: the tail of a link is the head of the previous link of a route, and both
// directions of a cable have the same ends. Throws InputError for endpoints that the cluster does not have,
// and RunError for more than 65,000 endpoints or 254 rails and for a route that passes a vertex twice.
EmulationGraph emulation_graph(const Cluster& cluster, std::vector<Endpoint> endpoints,
                               const std::vector<Conversation>& conversations, double most_bandwidth);

// Returns a human-readable text, also for tests, with a line for each vertex, cable, forward and link left
// out.
std::string describe(const EmulationGraph& graph);

}  // namespace rehearse
