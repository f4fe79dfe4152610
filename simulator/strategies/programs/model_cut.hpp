// Cuts a scenario's model into pipeline stages and decides which layers each of them recomputes.
#pragma once

#include <vector>

#include "models/segment.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/layout/stages.hpp"

namespace rehearse {

struct ModelCut {
  std::vector<int> stage_layers;  // layers of each part of the model: a stage, or one of its virtual stages
  std::vector<Layer> layers;
  std::vector<LayerCost> keeping_all;  // the same layers if no layer were recomputed
};

// Cuts the model as strategy.stage_layers says, or balances the parts by time if that is empty (with
// strategy.stages_by = "speed" by the time on the slowest device of the part's stage). In each part,
// the first training.recompute_layers recomputable layers are recomputed, as Megatron-LM's
// `--recompute-method block --recompute-num-layers` recomputes the first transformer layers of each pipeline
// stage (of each virtual stage, if there are several); 0: all layers are recomputed. With recompute_layers,
// parts are balanced by their times without recomputation, which adds about as much to each of them. Throws
// InputError if the model cannot be cut this way, or if no part has that many layers to recompute.
ModelCut cut_model(const Scenario& scenario);

// Returns the layers of a model whose parts are already cut. `pass` can differ from the scenario's pass
// shape.
std::vector<Layer> layers_in_parts(const Scenario& scenario, const PassShape& pass,
                                   const std::vector<int>& stage_layers);

// Returns the costs of the layers, each of all its segments together.
std::vector<LayerCost> costs_of(const std::vector<Layer>& layers);

// Returns the largest number of recomputable layers in any part.
int most_recompute_layers(const Scenario& scenario, const std::vector<int>& stage_layers);

}  // namespace rehearse
