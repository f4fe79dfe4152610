// How a library carries out a matrix product: in tiles, waves and parts along k, and how long that takes.
#pragma once

#include "topologies/device.hpp"

namespace rehearse {

// `batch` products of [m,k] x [k,n].
struct ProductShape {
  double m = 0, n = 0, k = 0, batch = 1;
};

// What the fastest way takes. Tiles are 0 on devices that say nothing of their compute units.
struct ProductTime {
  double seconds = 0;             // of arithmetic alone
  double tile_m = 0, tile_n = 0;  // of the result, by one compute unit at a time
  double split = 1;               // parts along k, whose results are added
  double waves = 0;               // tiles of all parts over compute units
};

// `rate`: FLOP/s of long products. `may_split`: along k too, as convolutions do.
ProductTime product_time(const ProductShape& shape, double rate, const Device& device, bool may_split);

}  // namespace rehearse
