// The parts of a bucket's weights that different groups of ranks have in common: those of experts that lie on
// ranks of their own, and all others.
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

// Copies elements [begin, begin + packed.elements) of what the runs hold, one behind the other, from `flat`
// to `packed`, or back.
void copy_runs(Arithmetic& arithmetic, int stream, const std::vector<WeightRun>& runs, std::size_t begin,
               const Array& flat, const Array& packed, bool to_packed);

// Gradients that a program sums part by part (Action::Kind::sum_part), in one piece each.
class PartSums {
public:
  PartSums(const Program& program, const TrainedNetwork& network, Arithmetic& arithmetic);
  // The buffer of a sum, filled with what this rank brings; end() takes out what has come.
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
