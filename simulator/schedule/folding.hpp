// Determines which ranks of a schedule can represent one another, before the network is considered.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/schedule/communication.hpp"
#include "simulator/schedule/partition.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// Computes colours that are equal for ranks that run the same program with the same amounts.
class RankColours {
public:
  explicit RankColours(const Schedule& schedule);
  std::uint64_t of(int role, int rank) const;

private:
  const Schedule& schedule_;
  std::vector<std::vector<const Quantity*>> varying_;  // by program: amounts that depend on a coordinate
};

// Returns whether equal ranks can be folded: false if the order in which they are served makes them differ
// (receives from any rank, signals to others, turns), or if callbacks must see every rank.
bool foldable(const Schedule& schedule);

// Labels with which transfers touch ranks.
inline constexpr std::uint32_t kSends = 0, kReceives = 1, kMember = 2;

// Adds the transfers of a schedule as edges over the nodes `first_node` + number of the rank among those that
// the communication's symmetry leaves.
void add_transfers(Hypergraph& graph, const Communication& communication, int first_node, std::uint64_t salt);

}  // namespace rehearse
