// Computes matrix products on processors with Eigen. The code is compiled once for each relevant instruction
// set; the widest one that this processor supports is chosen at run time.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rehearse {

// c = alpha a b + beta c in fp32, all row-major: a is m x k (k x m if transposed), b is k x n (n x k if
// transposed), c is m x n.
struct HostProduct {
  long m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1, beta = 0;
  const float *a = nullptr, *b = nullptr;
  float* c = nullptr;
};

struct ProductCode {
  std::string_view instructions;  // "AVX2 and FMA"
  void (*multiply)(const HostProduct& product) = nullptr;
};

// Returns the codes that this processor can run, the widest first. Their results differ by rounding.
std::span<const ProductCode> product_codes();

// Returns a text such as "products by Eigen 3.4.0 with AVX-512".
std::string product_library();

}  // namespace rehearse
