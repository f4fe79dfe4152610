// Numbers a fabric's switches and cables, so that ends, capacities and routes are computed and not stored.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/cluster.hpp"

namespace rehearse {

// A transfer between two nodes, as seen by the fabric.
struct NodePair {
  Endpoint from = 0, to = 0;
  int from_node = 0, to_node = 0;  // servers are numbered after the device nodes
  int from_nic = 0, to_nic = 0;
};

// Cables are numbered from 0. Direction 2 c of cable c leads from its first end to its second, direction 2 c
// + 1 back.
class Cabling {
public:
  struct Ends {
    std::string a, b;
  };
  virtual ~Cabling() = default;
  virtual std::int64_t cables() const = 0;
  virtual double bandwidth(int cable) const = 0;  // bytes/s per direction
  virtual Ends ends(int cable) const = 0;
  // Returns the direction from the end named `a` to the end named `b`; -1: no cable connects them.
  virtual int find(std::string_view a, std::string_view b) const = 0;
  // Appends the directions of the route, each plus `first`, in order; appends none if one switch connects
  // both nodes.
  virtual void route(const NodePair& flow, LinkId first, std::vector<LinkId>& links) const = 0;
  // As in Cluster, for a cable instead of a link.
  virtual int nodes_per_equal_block() const { return 0; }
  virtual int node_beside(int /*cable*/) const { return 0; }
};

// Makes the cabling of fabrics with cables, except `links`; nullptr for a single switch. The fabric must be
// checked and complete.
std::unique_ptr<Cabling> make_cabling(const Fabric& fabric, const Node& node, int nodes, int server_nodes);
// Called by make_cabling(); each is in a separate file.
std::unique_ptr<Cabling> make_leaf_spine(const Fabric& fabric, const Node& node, int nodes);  // and rail
std::unique_ptr<Cabling> make_fat_tree(const Fabric& fabric, const Node& node, int nodes);
std::unique_ptr<Cabling> make_torus(const Fabric& fabric, int nodes, int server_nodes);
std::unique_ptr<Cabling> make_dragonfly(const Fabric& fabric);

// Whether cables connect nodes directly and carry the latency, as in ring, torus and `links`; the NICs then
// have none.
inline bool joins_nodes(Fabric::Kind kind) {
  return kind == Fabric::Kind::ring || kind == Fabric::Kind::torus || kind == Fabric::Kind::links;
}
// Number of ports below an edge switch of a fat tree; the other ports of the radix lead up.
int ports_down(const Fabric& fabric, const Node& node);

// Parses `prefix` and a number without leading zeros, and removes them from the front of `text`.
bool take_number(std::string_view& text, std::string_view prefix, int& number);
// Like take_number(), but also requires that nothing follows.
bool is_number(std::string_view text, std::string_view prefix, int& number);
// Returns e.g. "node3"; servers are numbered after the device nodes.
std::string node_name_of(int node, int nodes);
// Deterministic hash, so that a flow takes the same path in every run.
std::uint64_t hash_of(const NodePair& flow);

}  // namespace rehearse
