// Manages the parts of a bucket's weights that different groups of ranks share: those of experts on separate
// ranks, and all others.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "backend/training/arithmetic.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

class TrainedNetwork;

// Elements [first, first + count) of flat weights or gradients.
struct WeightRun {
  std::size_t first = 0, count = 0;
};
std::size_t elements_of(const std::vector<WeightRun>& runs);

// Copies elements [begin, begin + packed.elements) of the concatenated runs from `flat` to `packed`, or back.
void copy_runs(Arithmetic& arithmetic, int stream, const std::vector<WeightRun>& runs, std::size_t begin,
               const Array& flat, const Array& packed, bool to_packed);

// Packs gradients that a program sums part by part (Action::Kind::sum_part) into one array per part.
class PartSums {
public:
  PartSums(const Program& program, const TrainedNetwork& network, Arithmetic& arithmetic);
  // begin() returns the buffer of a sum, filled with this rank's gradients; end() takes the sum out of it.
  Array begin(int stream, const Op& op) { return copy(stream, op, true); }
  void end(int stream, const Op& op) { copy(stream, op, false); }

private:
  struct Sum {
    std::vector<WeightRun> runs;
    OwnedArray packed;
  };
  Array copy(int stream, const Op& op, bool to_packed);
  const TrainedNetwork& network_;
  Arithmetic& arithmetic_;
  std::map<std::pair<int, int>, Sum> sums_;  // by first layer and part
};

}  // namespace rehearse
