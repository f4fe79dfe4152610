// Predicts long steps from a few of their micro-batches.
#pragma once

#include <optional>

#include "simulator/commands/predicting/known_schedules.hpp"

namespace rehearse {

// Simulates a step with a few of the scenario's micro-batches, and one with a round of them more. If the two
// differ in that round alone (repeats_a_round()), all further rounds are like it, and the metrics of the
// whole step follow. Returns nullopt if they do not, or if the whole step has no more than `most_ops` ops: it
// is then simulated in full, so that its trace is complete. A count, rather than a clock, decides this, so
// that a scenario always has the same answer. Simulates in children. `known`, if not null, has schedules, and
// keeps those that it lacks.
inline constexpr double kMostOpsInFull = 20'000;
std::optional<Prediction> predict_from_rounds(const Scenario& scenario, const WatchPrediction& watch,
                                              double most_ops = kMostOpsInFull,
                                              KnownSchedules* known = nullptr);

}  // namespace rehearse
