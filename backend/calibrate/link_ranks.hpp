// What the ranks of a transport measure between them: messages, and collectives as executors carry them out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/calibrate/measure_links.hpp"
#include "backend/runtime/transport.hpp"

namespace rehearse {

// All ranks make one alike; rank 0 then calls trials() and their functions, and end() at last, while the
// others are in follow(). RunError if a rank is gone.
class LinkRanks {
public:
  // Opens the transport. `node`: what tells the node of this rank from others, its machine as a rule.
  // Messages: from rank 0 to the first other rank of its own node, and to the first elsewhere; collectives of
  // all kinds over the first 2, 4, 8, ... ranks of its node and over all of them, over as many with one rank
  // on a node, and over all ranks.
  LinkRanks(Transport& transport, const std::string& node);
  ~LinkRanks();
  LinkRanks(const LinkRanks&) = delete;
  LinkRanks& operator=(const LinkRanks&) = delete;

  // Messages: half of a round trip. Collectives: the mean of several in a row, after one that brings the
  // ranks together; of chains until the last member is done.
  std::vector<LinkTrial> trials();
  void follow();
  void end();
  int nodes() const { return nodes_; }

private:
  struct Trial;
  void order(int trial, double bytes);
  double perform(const Trial& trial, std::size_t bytes);
  double time_chain(int last, bool from_root, int times, const std::function<void()>& run);
  void add_messages(Reach reach, int peer, std::vector<Channel>& channels);
  void add_collectives(Reach reach, const std::vector<int>& ranks, std::vector<Channel>& channels);

  Transport& transport_;
  std::vector<Trial> trials_;
  std::vector<std::byte> buffer_;
  std::vector<double> told_at_s_;  // by rank, of rank 0's last order
  int nodes_ = 1;
};

}  // namespace rehearse
