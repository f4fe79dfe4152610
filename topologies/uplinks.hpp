// How many whole cables lead up from a leaf or an edge switch, and which oversubscription that gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/cluster.hpp"

namespace rehearse {

inline constexpr int kMostSpines = 65'536;

// One way to connect a leaf to the spines, one cable to each.
struct Uplinks {
  int spines = 1;
  // Destinations go over spine (port % fold) % spines; 0: port % spines.
  std::int64_t fold = 0;
  // Ports of a leaf whose traffic shares the fullest cable: ports / spines, if the spines divide the ports.
  double ports_per_cable = 1;
};

// The numbers of spines that follow from an oversubscription, ascending, for a leaf with `ports` ports below.
// Of any two of them, destinations that share a cable with the larger number also share one with the smaller.
// So with cables of one bandwidth, fewer spines never carry a traffic pattern faster. (Three spines and two,
// chosen modulo 3 and 2, do not have this property: destinations 0 and 3 share a cable only with three.)
// Neighbours differ by a factor of 2 or less; halves of the ports come first, then halves of those.
std::vector<Uplinks> nested_uplinks(std::int64_t ports);

// The fewest of these uplinks that are oversubscribed at most as `fabric.oversubscription` says, with cables
// of `fabric.link_bandwidth`; the most there are if none suffices.
Uplinks fewest_uplinks(const Fabric& fabric, const Node& node, std::int64_t ports);

// Ports below a leaf, to which destinations of its uplinks belong.
std::int64_t ports_below_leaf(const Fabric& fabric, const Node& node);

// One sentence if whole cables give another oversubscription than the scenario says; else empty.
std::string oversubscription_note(const Cluster& cluster);

}  // namespace rehearse
