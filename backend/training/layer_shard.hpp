// Describes the share of each perceptron layer that one rank computes.
#pragma once

#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/schedule/mesh.hpp"

namespace rehearse {

// Part `number` of `of` equal parts.
struct Part {
  int number = 0, of = 1;
  long size(long whole) const { return whole / of; }
  long first(long whole) const { return number * size(whole); }
};

struct LayerShard {
  Part inputs, outputs;  // of the rows and columns of the weight matrix
  Part samples;          // of the micro-batch: in the product with the matrix
  Part results;          // of the micro-batch: after the product, and in the layer's output
  // Whether the gradients of matrix and bias are partial sums, one on each rank that shares the layer.
  bool sums_matrix = false, sums_bias = false;
};

// Returns a worker's coordinates on all axes of its mesh.
std::vector<At> place_of(const Mesh& workers, int rank);
// Returns the coordinate on each factor of factors_of(), given coordinates on some axes; 0 on all other axes.
std::vector<int> factor_coordinates(const Scenario& scenario, const Mesh& workers,
                                    const std::vector<At>& where);
// Returns the shards by layer. The scenario's model must be a perceptron, else throws
// std::bad_variant_access.
std::vector<LayerShard> layer_shards(const Scenario& scenario, const std::vector<int>& coordinates);

}  // namespace rehearse
