// The share of each layer of a perceptron that one rank computes.
#pragma once

#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/schedule/mesh.hpp"

namespace rehearse {

// Part `number` of `of` equal ones.
struct Part {
  int number = 0, of = 1;
  long size(long whole) const { return whole / of; }
  long first(long whole) const { return number * size(whole); }
};

struct LayerShard {
  Part inputs, outputs;  // of the rows and columns of the weights' matrix
  Part samples;          // of the micro-batch: in the product with the matrix
  Part results;          // of the micro-batch: in what follows the product, and in the layer's output
  // Whether the gradients of matrix and bias are summands, one on each rank that shares the layer.
  bool sums_matrix = false, sums_bias = false;
};

// A worker's coordinates on all axes of its mesh.
std::vector<At> place_of(const Mesh& workers, int rank);
// The coordinate on each factor of factors_of(), where those on the axes are `where`, and 0 on other axes.
std::vector<int> factor_coordinates(const Scenario& scenario, const Mesh& workers,
                                    const std::vector<At>& where);
// By layer. The scenario's model is a perceptron; std::bad_variant_access otherwise.
std::vector<LayerShard> layer_shards(const Scenario& scenario, const std::vector<int>& coordinates);

}  // namespace rehearse
