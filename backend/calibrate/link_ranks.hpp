// What the ranks of a transport measure between them: messages, and collectives as executors carry them out.
#pragma once

#include <memory>
#include <vector>

#include "backend/calibrate/measure_links.hpp"
#include "backend/runtime/transport.hpp"

namespace rehearse {

// All ranks make one alike; rank 0 then calls trials() and their functions, and end() at last, while the
// others are in follow(). RunError if a rank is gone.
class LinkRanks {
public:
  // Opens the transport. Messages: from rank 0 to the first other rank of its own node, and to the first
  // elsewhere; ring all-reduce and all-gather over the first 2, 4, 8, ... ranks and over all.
  explicit LinkRanks(Transport& transport);
  ~LinkRanks();
  LinkRanks(const LinkRanks&) = delete;
  LinkRanks& operator=(const LinkRanks&) = delete;

  // Messages: half of a round trip. Collectives: the mean of several in a row, after one that brings the
  // ranks together.
  std::vector<LinkTrial> trials();
  void follow();
  void end();

private:
  struct Trial;
  void order(int trial, double bytes);
  double perform(const Trial& trial, std::size_t bytes);

  Transport& transport_;
  std::vector<Trial> trials_;
  std::vector<std::byte> buffer_;
};

}  // namespace rehearse
