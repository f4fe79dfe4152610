// Predicts long steps from a few of their micro-batches.
#pragma once

#include <functional>
#include <limits>
#include <optional>

#include "simulator/commands/predicting/known_schedules.hpp"

namespace rehearse {

inline constexpr double kMostOpsInFull = 20'000;
inline constexpr double kMostUneven = 0.005;  // of an extrapolated step

// Which steps are predicted from a few of their micro-batches. Counts, rather than a clock, decide, so that a
// scenario always has the same answer.
struct RoundsEffort {
  // A step of no more ops is simulated in full, so that its trace is complete.
  double least_ops = kMostOpsInFull;
  // A step of more ops, none of whose rounds repeats the one before exactly, is extrapolated linearly if the
  // last rounds that were simulated grow it so evenly that their difference adds up to at most kMostUneven.
  double most_ops = std::numeric_limits<double>::infinity();
  // Returns whether such a step may be extrapolated from the first two numbers of micro-batches, without that
  // bound, if this is the result. Empty: never.
  std::function<bool(double step_time_s, double memory_bytes)> roughly = {};
};

// Simulates a step with a few of the scenario's micro-batches, and one with a round of them more. If the two
// differ in that round alone (repeats_a_round()), all further rounds are like it, and the metrics of the
// whole step follow. Returns nullopt if the step has to be simulated in full. Simulates in children. `known`,
// if not null, has schedules, and keeps those that it lacks.
std::optional<Prediction> predict_from_rounds(const Scenario& scenario, const WatchPrediction& watch,
                                              const RoundsEffort& effort = {},
                                              KnownSchedules* known = nullptr);

}  // namespace rehearse
