// A fabric's switches and cables as numbers: ends, capacities and routes are computed, none is stored.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/cluster.hpp"

namespace rehearse {

// A transfer between two nodes, as a fabric sees it.
struct NodePair {
  Endpoint from = 0, to = 0;
  int from_node = 0, to_node = 0;  // servers come after the device nodes
  int from_nic = 0, to_nic = 0;
};

// Cables are numbered from 0; cable c has direction 2 c from its first end to its second and 2 c + 1 back.
class Cabling {
public:
  struct Ends {
    std::string a, b;
  };
  virtual ~Cabling() = default;
  virtual std::int64_t cables() const = 0;
  virtual double bandwidth(int cable) const = 0;  // bytes/s a direction
  virtual Ends ends(int cable) const = 0;
  // The direction from the end named `a` to the end named `b`; -1: no cable joins them.
  virtual int find(std::string_view a, std::string_view b) const = 0;
  // Appends the directions, plus `first`, in order; nothing if one switch joins both nodes.
  virtual void route(const NodePair& flow, LinkId first, std::vector<LinkId>& links) const = 0;
};

// Of the fabrics with cables other than `links`; nullptr for one switch. The fabric is checked and complete.
std::unique_ptr<Cabling> make_cabling(const Fabric& fabric, const Node& node, int nodes, int server_nodes);
// What make_cabling calls, by the file that it stands in.
std::unique_ptr<Cabling> make_leaf_spine(const Fabric& fabric, const Node& node, int nodes);  // and rail
std::unique_ptr<Cabling> make_fat_tree(const Fabric& fabric, const Node& node, int nodes);
std::unique_ptr<Cabling> make_torus(const Fabric& fabric, int nodes, int server_nodes);
std::unique_ptr<Cabling> make_dragonfly(const Fabric& fabric);

// Ring and torus: cables join nodes and carry the latency, as those of `links` do; the NICs have none.
inline bool joins_nodes(Fabric::Kind kind) {
  return kind == Fabric::Kind::ring || kind == Fabric::Kind::torus || kind == Fabric::Kind::links;
}
// Ports below an edge switch of a fat tree; the radix's others go up.
int ports_down(const Fabric& fabric, const Node& node);

// "prefix" and a number without leading zeros; what follows stays in `text`.
bool take_number(std::string_view& text, std::string_view prefix, int& number);
bool is_number(std::string_view text, std::string_view prefix, int& number);  // and nothing follows
// "node3"; servers come after the device nodes.
std::string node_name_of(int node, int nodes);
// The same flow takes the same way in every run.
std::uint64_t hash_of(const NodePair& flow);

}  // namespace rehearse
