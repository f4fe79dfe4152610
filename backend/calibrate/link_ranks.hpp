// What ranks measure between them: messages and collectives, in the order that rank 0 gives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/calibrate/measure_links.hpp"
#include "backend/runtime/link_carrier.hpp"
#include "backend/runtime/transport.hpp"

namespace rehearse {

// All ranks make one alike; rank 0 then calls trials() and their functions, and end() at last, while the
// others are in follow(). RunError if a rank is gone.
class LinkRanks {
public:
  // Opens the carrier; null: transport_links(). `node`: what tells the node of this rank from others, its
  // machine as a rule. Messages: from rank 0 to the first other rank of its own node, and to the first
  // elsewhere; collectives of all kinds that the carrier has over the first 2, 4, 8, ... ranks of its node
  // and over all of them, over as many with one rank on a node, and over all ranks.
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
  std::vector<double> told_at_s_;  // by rank, of rank 0's last order
  int nodes_ = 1;
};

}  // namespace rehearse
