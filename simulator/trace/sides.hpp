// Finds rows of a trace that are sides of the same transfer, on any ranks.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/trace/trace.hpp"

namespace rehearse {

class Sides {
public:
  explicit Sides(const Trace& trace);

  // Returns the other rows that took part in the transfers of `row`: the ends of its messages, or the members
  // of its collective. Classes that represent several members count once.
  std::vector<std::size_t> of(std::size_t row) const;
  // Returns the row whose signal, as it ended, satisfied `row` (wait_until); kNoRow if there is none.
  std::size_t signal_for(std::size_t row) const;

private:
  void match_collectives();

  const Trace& trace_;
  std::vector<std::pair<std::size_t, std::size_t>> messages_;                // both directions, sorted
  std::vector<std::vector<std::size_t>> calls_;                              // collectives: rows by call
  std::vector<std::pair<std::size_t, std::size_t>> call_of_row_;             // sorted
  std::map<std::pair<int, std::string>, std::vector<std::size_t>> signals_;  // job, counter; sorted by end
};

}  // namespace rehearse
