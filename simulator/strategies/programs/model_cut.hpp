// The layers of a scenario's model, in stages, each as its stage computes it.
#pragma once

#include <vector>

#include "models/segment.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/layout/stages.hpp"

namespace rehearse {

struct ModelCut {
  std::vector<int> stage_layers;  // of each part of the model: a stage, or one of its virtual stages
  std::vector<Layer> layers;
  std::vector<LayerCost> keeping_all;  // the same layers if nothing was recomputed
};

// Parts as strategy.stage_layers gives them, else balanced by time. Of each part the first
// training.recompute_layers layers are recomputed that can be, as Megatron-LM's
// `--recompute-method block --recompute-num-layers` recomputes the first transformer layers of each pipeline
// stage (of each virtual one, where there are several); 0: all layers are. With recompute_layers parts are
// balanced by the times without recomputation, which adds about as much to each of them. InputError if the
// model cannot be cut so, or no part has so many layers to recompute.
ModelCut cut_model(const Scenario& scenario);

// The layers of a model whose parts are cut already. `pass` may differ from the scenario's own.
std::vector<Layer> layers_in_parts(const Scenario& scenario, const PassShape& pass,
                                   const std::vector<int>& stage_layers);

// Layers of the part that has most of those that can be recomputed.
int most_recompute_layers(const Scenario& scenario, const std::vector<int>& stage_layers);

}  // namespace rehearse
