// How a library carries out a matrix product: in tiles, waves and parts along k, and how long that takes.
#pragma once

#include "topologies/device.hpp"

namespace rehearse {

// `batch` products of [m,k] x [k,n].
struct ProductShape {
  double m = 0, n = 0, k = 0, batch = 1;
};

// By whom and on which units.
struct ProductUnits {
  double rate = 0;            // FLOP/s of long products
  bool tensor_cores = false;  // else on units that multiply and add single numbers
  bool convolution = false;   // an implicit or Winograd's product of a library of convolutions
};

// What the fastest way takes. Tiles are 0 where the product does not come in tiles: on devices that say
// nothing of their compute units, and products with a vector.
struct ProductTime {
  double seconds = 0;             // of arithmetic, and of adding the parts
  double tile_m = 0, tile_n = 0;  // of the result, by one compute unit at a time
  double split = 1;               // parts along k, whose results are added
  double waves = 0;               // tiles of all parts over compute units
};
ProductTime product_time(const ProductShape& shape, const ProductUnits& units, const Device& device);

}  // namespace rehearse
