// The weights of a transformer's segments: which tensors they are, and what training begins with.
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
  float mean = 0, deviation = 0;  // of the normal numbers that it begins with
  int segment = 0;                // of the layer
  // On the rank: its part, the bytes of which lie `offset` elements into those of its layer, and on which
  // factors its gradient is a summand, a bit each.
  Placements placements;
  TensorLayout local;
  std::size_t offset = 0;
  unsigned summed = 0;
  std::uint64_t number = 0;  // of its random numbers, in the model

  bool sharded() const { return local.elements() < whole.elements(); }
};

// Of a layer on one rank, in the order in which they lie. `model`: model_layers() of the scenario.
// `table_copy`: the last layer's copy of the tied embedding.
struct LayerParameters {
  std::vector<ParameterTensor> tensors;
  std::size_t elements = 0;
};
LayerParameters layer_parameters(const Scenario& scenario, const std::vector<Layer>& model, int layer,
                                 const Shards& shards, bool table_copy);

// The rank's part. As GPT-2 begins (Radford et al., "Language Models are Unsupervised Multitask Learners",
// 2019, section 2.3): normal with deviation 0.02, and that over the square root of the number of residual
// layers in what ends in a residual sum.
std::vector<float> initial_values(const ParameterTensor& tensor, const Shards& shards, std::uint64_t seed);

// The rank's part of the numbers of a whole tensor.
std::vector<float> part_of(const ParameterTensor& tensor, const Shards& shards, std::vector<float> values);

DimSizes dim_sizes(const Scenario& scenario);
// Whether the first and the last layer are held by different ranks and have a table in common.
bool tied_apart(const Scenario& scenario);

}  // namespace rehearse
