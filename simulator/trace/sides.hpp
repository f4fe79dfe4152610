// Which rows of a trace are sides of the same transfer, on whatever ranks.
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

  // The other rows that took part in the transfers of `row`: the ends of its messages, the members of its
  // collective. Classes that stand for several of them count once.
  std::vector<std::size_t> of(std::size_t row) const;
  // The row that raised the counter which `row` (wait_until) waited for, as it ended; kNoRow if there is
  // none.
  std::size_t signal_for(std::size_t row) const;

private:
  void match_collectives();

  const Trace& trace_;
  std::vector<std::pair<std::size_t, std::size_t>> messages_;                // both ways, sorted
  std::vector<std::vector<std::size_t>> calls_;                              // collectives: rows of a call
  std::vector<std::pair<std::size_t, std::size_t>> call_of_row_;             // sorted
  std::map<std::pair<int, std::string>, std::vector<std::size_t>> signals_;  // job, counter; by end
};

}  // namespace rehearse
