// Finds shortest paths through a fabric that is given cable by cable.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "topologies/cluster.hpp"

namespace rehearse {

// Cable i of the list is link 2i from a to b and link 2i+1 back.
class FabricGraph {
public:
  // `nodes` names the endpoints' vertices in the order of Cluster's nodes; all other names are switches.
  // Throws InputError if a cable connects a vertex to itself, ends at an unknown node or is listed twice, or
  // if a node cannot be reached from the first.
  FabricGraph(const std::vector<std::string>& nodes, const std::vector<ClusterParts::GraphLink>& cables,
              const Place& place);

  // Appends the links (numbered as above, plus `first_link`) of the path with the fewest hops; among those,
  // the one with the lowest latency; among those, the one whose last switches come first in order of their
  // names.
  void path(int from_node, int to_node, LinkId first_link, std::vector<LinkId>& links) const;

private:
  int vertex(const std::string& name);
  // Returns for each vertex the link by which it is entered; -1: none or not reached.
  std::vector<LinkId> tree(int source) const;

  struct Edge {
    int to = 0;
    LinkId link = 0;
  };
  std::map<std::string, int> vertices_;
  std::vector<std::string> names_;
  std::vector<std::vector<Edge>> edges_;
  std::vector<int> tail_;          // by link: the vertex where it starts
  std::vector<double> latency_s_;  // by link
  mutable std::mutex mutex_;
  mutable std::map<int, std::vector<LinkId>> trees_;  // by source
};

}  // namespace rehearse
