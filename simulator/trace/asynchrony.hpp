// The figures of workers that do not wait for each other: how fast each is, and how stale its gradients are.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "simulator/trace/trace.hpp"

namespace rehearse {

struct AsynchronyFigures {
  struct Worker {
    int rank = 0;
    int rounds = 0;  // applied by server 0 in the window, both its ends included
    double rounds_per_s = 0, samples_per_s = 0;
    // From the first to the last of them: whole rounds of its own. The window itself if there are none.
    double begin_s = 0, end_s = 0;
  };
  std::vector<Worker> workers;  // by rank
  // From when the last worker has done its warm-up to when the first one has applied its last round: all of
  // them are under way throughout.
  double window_begin_s = 0, window_end_s = 0;
  double samples_per_s = 0;  // of all together
  // Of figures that are means over several simulations (starting_phases.hpp): how many, and between which
  // step times, in seconds. Windows are then the sum of theirs.
  struct StartingPhases {
    int count = 0;
    double least_s = 0, most_s = 0;
  };
  std::optional<StartingPhases> phases;
  // Of each gradient applied in the window: how many gradients of other workers server 0 has applied between
  // answering with the weights it was computed from and applying it (Gupta, Zhang, Wang, "Model Accuracy and
  // Runtime Tradeoff in Distributed Deep Learning", ICDM 2016). Counted on the bucket that is pushed last.
  std::map<int, long> staleness;  // how many gradients had this one
  double mean_staleness() const;
  int most_staleness() const { return staleness.empty() ? 0 : staleness.rbegin()->first; }
};

// A gradient that server 0 has applied.
struct AppliedPush {
  int worker = 0, round = 0;
  // When the server answered with the weights it was computed from, be it that the answer then waited for its
  // card; round 0: 0.
  double read_s = 0;
  double applied_s = 0;
};
// In the order in which they were applied, over the whole run of a job whose schedule is asynchronous.
std::vector<AppliedPush> applied_pushes(const Trace& trace, int job);

AsynchronyFigures asynchrony_figures(const Trace& trace, int job);

}  // namespace rehearse
