// Which plans there are for a model on a cluster.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "simulator/planner/plan_choice.hpp"

namespace rehearse {

// By key of a scenario: the only values that plans may give it, as texts.
using SpaceLimits = std::map<std::string, std::vector<std::string>, std::less<>>;

// The keys that SpaceLimits may have.
std::vector<std::string> limited_keys();

// Ways to split the model's work that one placement and one set of a layer's kernels have in common: the
// degrees of tensor, context and expert parallelism. Whether the model can be split so is not checked yet.
std::vector<CoreChoice> splits(const Scenario& scenario, const SpaceLimits& limits);

// Pipelines and micro-batches for a split, without recomputation and cut by time. `layers`: of the model.
std::vector<CoreChoice> pipelines(const Scenario& scenario, const CoreChoice& split, int layers,
                                  const SpaceLimits& limits);

// The same core with every kind of recomputation. `most`: layers of a part that can be recomputed in full.
std::vector<CoreChoice> recomputations(const Scenario& scenario, const CoreChoice& core,
                                       const std::function<int(const CoreChoice&)>& most,
                                       const SpaceLimits& limits);

// What may become of the gradients of a core's ranks.
std::vector<GradientChoice> gradient_choices(const Scenario& scenario, const CoreChoice& core,
                                             const SpaceLimits& limits);

}  // namespace rehearse
