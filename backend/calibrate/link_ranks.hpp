// Measures messages and collectives between ranks, in the order that rank 0 specifies.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/calibrate/measure_links.hpp"
#include "backend/runtime/link_carrier.hpp"
#include "backend/runtime/transport.hpp"

namespace rehearse {

// All ranks construct it with the same arguments. Rank 0 then calls trials() and their functions, and finally
// end(), while the others are in follow(). Throws RunError if a rank is gone.
class LinkRanks {
public:
  // Opens the carrier; null: transport_links(). `node` identifies the node of this rank, usually by its
  // machine. Messages go from rank 0 to the first other rank of its node, and to the first rank on another
  // node. Collectives of all kinds that the carrier supports run over the first 2, 4, 8, ... ranks of rank
  // 0's node and over all of them, over the same numbers of ranks with one rank per node, and over all ranks.
  LinkRanks(Transport& transport, const std::string& node, std::unique_ptr<LinkCarrier> carrier = nullptr);

  std::vector<LinkTrial> trials();
  void follow();
  void end();
  int nodes() const { return nodes_; }
  const LinkCarrier& carrier() const { return *carrier_; }

private:
  void order(int trial, double bytes);
  void add_collectives(Reach reach, const std::vector<int>& ranks);

  Transport& transport_;
  std::unique_ptr<LinkCarrier> carrier_;
  std::vector<LinkGroup> groups_;
  std::vector<double> told_at_s_;  // by rank: the time of rank 0's last order to it
  int nodes_ = 1;
};

}  // namespace rehearse
