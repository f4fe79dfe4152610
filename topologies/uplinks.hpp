// Computes how many complete cables lead up from a leaf or an edge switch, and the resulting
// oversubscription.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/cluster.hpp"

namespace rehearse {

inline constexpr int kMostSpines = 65'536;

// One way to connect a leaf to the spines, with one cable to each.
struct Uplinks {
  int spines = 1;
  // Destinations use spine (port % fold) % spines; 0: port % spines.
  std::int64_t fold = 0;
  // Ports of a leaf whose traffic shares the fullest cable: ports / spines, if the number of spines divides
  // the ports.
  double ports_per_cable = 1;
};

// Returns the numbers of spines that can result from an oversubscription, ascending, for a leaf with `ports`
// ports below. For any two of them, destinations that share a cable with the larger number also share one
// with the smaller. So with cables of equal bandwidth, fewer spines never carry a traffic pattern faster.
// (Three spines and two, chosen modulo 3 and 2, do not have this property: destinations 0 and 3 share a cable
// only with three.) Consecutive numbers differ by a factor of 2 or less; halves of the ports come first, then
// halves of those.
std::vector<Uplinks> nested_uplinks(std::int64_t ports);

// Returns the fewest of these uplinks whose oversubscription is at most `fabric.oversubscription`, with
// cables of `fabric.link_bandwidth`; the largest number if none suffices.
Uplinks fewest_uplinks(const Fabric& fabric, const Node& node, std::int64_t ports);

// Number of ports below a leaf, to which the destinations of its uplinks belong.
std::int64_t ports_below_leaf(const Fabric& fabric, const Node& node);

// Returns a sentence if complete cables give a different oversubscription than the scenario requests; else
// empty.
std::string oversubscription_note(const Cluster& cluster);

}  // namespace rehearse
