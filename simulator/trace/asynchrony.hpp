// Computes figures of workers that do not wait for each other: how fast each is, and how stale its gradients
// are.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "simulator/trace/trace.hpp"

namespace rehearse {

struct AsynchronyFigures {
  struct Worker {
    int rank = 0;
    int rounds = 0;  // applied by server 0 in the window, including both its ends
    // Over the window; the rounds under way at its ends count by the part of their time within it.
    double rounds_per_s = 0, samples_per_s = 0;
  };
  std::vector<Worker> workers;  // by rank
  // The window in which all workers are measured: from the time when the last worker ends its warm-up to the
  // time when the first worker's last round is applied. All workers run throughout.
  double window_begin_s = 0, window_end_s = 0;
  double samples_per_s = 0;  // of all workers together
  // Mean over the window, by link (step_traffic.hpp); empty: not known.
  std::map<int, double> link_bytes_per_s;
  // For figures that are means over several simulations (starting_phases.hpp): their number, and the range of
  // their step times in seconds. Windows are then the sum of those of the simulations.
  struct StartingPhases {
    int count = 0;
    double least_s = 0, most_s = 0;
  };
  std::optional<StartingPhases> phases;
  // Staleness of each gradient applied in the window: the number of gradients of other workers that server 0
  // applied between sending the weights from which it was computed and applying it (Gupta, Zhang, Wang,
  // "Model Accuracy and Runtime Tradeoff in Distributed Deep Learning", ICDM 2016). Counted for the bucket
  // that is pushed last.
  std::map<int, long> staleness;  // number of gradients by staleness
  double mean_staleness() const;
  int most_staleness() const { return staleness.empty() ? 0 : staleness.rbegin()->first; }
};

// A gradient that server 0 has applied.
struct AppliedPush {
  int worker = 0, round = 0;
  // When the server's answer with the weights from which it was computed was ready to be sent, even if the
  // answer then waited for the server's card; round 0: 0.
  double read_s = 0;
  double applied_s = 0;
};
// Returns the applied gradients in the order in which they were applied, over the entire run of a job whose
// schedule is asynchronous.
std::vector<AppliedPush> applied_pushes(const Trace& trace, int job);

AsynchronyFigures asynchrony_figures(const Trace& trace, int job);

}  // namespace rehearse
