// Describes the weights of a transformer's segments: their tensors and their initial values.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/training/tensor_layout.hpp"

namespace rehearse {

enum class WeightRole : std::uint8_t {
  table,
  positions,
  gain,
  offset,
  key_gain,
  query,
  query_bias,
  key_value,
  key_value_bias,
  projection,
  bias,
  gate,
  gate_bias,
  up,
  up_bias,
  down,
  router,
  router_bias,
};

struct ParameterTensor {
  WeightRole role = WeightRole::table;
  TensorLayout whole;
  float mean = 0, deviation = 0;  // of its initial, normally distributed numbers
  int segment = 0;                // index in the layer
  // On the rank: its part, which begins `offset` elements into its layer's weights, and the factors on which
  // its gradient is a partial sum, one bit each.
  Placements placements;
  TensorLayout local;
  std::size_t offset = 0;
  unsigned summed = 0;
  std::uint64_t number = 0;  // of its random sequence, unique in the model

  bool sharded() const { return local.elements() < whole.elements(); }
};

// The weights of layer `number` on one rank, in memory order. `model` is model_layers() of the scenario.
// `table_copy`: the last layer has a copy of the tied embedding.
struct LayerParameters {
  std::vector<ParameterTensor> tensors;
  std::size_t elements = 0;
};
LayerParameters layer_parameters(const Scenario& scenario, const std::vector<Layer>& model, int number,
                                 const Shards& shards, bool table_copy);

// Returns the initial values of the rank's part, as in GPT-2 (Radford et al., "Language Models are
// Unsupervised Multitask Learners", 2019, section 2.3): normal with deviation 0.02, divided by the square
// root of the number of residual layers for weights whose results are added to the residual.
std::vector<float> initial_values(const ParameterTensor& tensor, const Shards& shards, std::uint64_t seed);

// Extracts the rank's part from the values of a complete tensor.
std::vector<float> part_of(const ParameterTensor& tensor, const Shards& shards, std::vector<float> values);

DimSizes dim_sizes(const Scenario& scenario);
// Returns whether different ranks hold the first and the last layer and the two share a tied table.
bool tied_apart(const Scenario& scenario);

}  // namespace rehearse
