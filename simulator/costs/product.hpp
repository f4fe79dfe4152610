// Computes how a library carries out a matrix product (tiles, waves, parts along k) and how long that takes.
#pragma once

#include "topologies/device.hpp"

namespace rehearse {

// `batch` products of [m,k] x [k,n].
struct ProductShape {
  double m = 0, n = 0, k = 0, batch = 1;
};

// The units and the library that carry out a product.
struct ProductUnits {
  double rate = 0;            // FLOP/s that long products reach
  bool tensor_cores = false;  // false: units that multiply and add single numbers
  bool convolution = false;   // an implicit or Winograd's product in a convolution library
};

// The fastest way to carry out a product. Tile sizes are 0 if the product is not tiled: on devices that do
// not state their number of compute units, and for products with a vector.
struct ProductTime {
  double seconds = 0;             // arithmetic, plus adding the parts
  double tile_m = 0, tile_n = 0;  // part of the result that one compute unit computes at a time
  double split = 1;               // number of parts along k, whose results are added
  double waves = 0;               // tiles of all parts divided by the compute units
};
ProductTime product_time(const ProductShape& shape, const ProductUnits& units, const Device& device);

}  // namespace rehearse
