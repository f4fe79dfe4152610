// Matrix products on processors by Eigen, compiled once for each set of instructions that matters to them;
// the widest that this processor has is taken when the program runs.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rehearse {

// c = alpha a b + beta c in fp32, all of them row-major: a is m x k (k x m where it is transposed), b is k x
// n (n x k), c is m x n.
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

// The codes that this processor can run, the widest first. Their results differ by rounding.
std::span<const ProductCode> product_codes();

// "products by Eigen 3.4.0 with AVX-512"
std::string product_library();

}  // namespace rehearse
