// Enumerates the plans that exist for a model on a cluster.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "simulator/planner/plan_choice.hpp"

namespace rehearse {

// By key of a scenario: the only values that plans may give the key, as texts.
using SpaceLimits = std::map<std::string, std::vector<std::string>, std::less<>>;

// Returns the keys that SpaceLimits may contain.
std::vector<std::string> limited_keys();

// Returns the ways to split the model's work: the degrees of tensor, context and expert parallelism, which
// determine the placement and the kernels of a layer. Does not check whether the model can be split in this
// way.
std::vector<CoreChoice> splits(const Scenario& scenario, const SpaceLimits& limits);

// Returns the pipelines and micro-batches for a split, without recomputation and with both rules of cutting.
// `layers`: number of layers of the model.
std::vector<CoreChoice> pipelines(const Scenario& scenario, const CoreChoice& split, int layers,
                                  const SpaceLimits& limits);

// Returns the same core with every kind of recomputation. `most` returns how many layers of a part can be
// recomputed in full.
std::vector<CoreChoice> recomputations(const Scenario& scenario, const CoreChoice& core,
                                       const std::function<int(const CoreChoice&)>& most,
                                       const SpaceLimits& limits);

// Returns the choices for the gradients of a core's ranks.
std::vector<GradientChoice> gradient_choices(const Scenario& scenario, const CoreChoice& core,
                                             const SpaceLimits& limits);

}  // namespace rehearse
