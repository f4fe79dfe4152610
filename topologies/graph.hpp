// Shortest paths through a fabric given cable by cable.
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
  // `nodes` names the endpoints' vertices in the order of Cluster's nodes; the other names are switches.
  // InputError for a cable that leads nowhere or stands twice, and for a node that cannot be reached from the
  // first.
  FabricGraph(const std::vector<std::string>& nodes, const std::vector<ClusterParts::GraphLink>& cables,
              const Place& place);

  // Appends the links (numbers as above, plus `first_link`) of the path with the fewest hops; of those the
  // one with the least latency; of those the one whose last switches come first in the order of their names.
  void path(int from_node, int to_node, LinkId first_link, std::vector<LinkId>& links) const;

private:
  int vertex(const std::string& name);
  std::vector<LinkId> tree(
      int source) const;  // the link by which each vertex is entered, -1 where there is none

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
