#include "backend/host/products.hpp"

#include <fmt/format.h>

#include <Eigen/Core>
#include <array>

namespace rehearse {

// Defined in products_baseline.cpp, products_avx2.cpp and products_avx512.cpp.
void multiply_baseline(const HostProduct& product);
#ifdef REHEARSE_WIDE_PRODUCTS
void multiply_avx2(const HostProduct& product);
void multiply_avx512(const HostProduct& product);
#endif

namespace {

#ifdef REHEARSE_WIDE_PRODUCTS
constexpr std::array<ProductCode, 3> kCodes = {
    {{"AVX-512", multiply_avx512}, {"AVX2 and FMA", multiply_avx2}, {"SSE2", multiply_baseline}}};

std::size_t first_code() {
  const bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  // The instructions that -mavx512f, -mavx512dq, -mavx512bw and -mavx512vl let the compiler use.
  if (fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return 0;
  return fma ? 1 : 2;
}
#else
constexpr std::array<ProductCode, 1> kCodes = {{{"the compiler's instructions", multiply_baseline}}};

std::size_t first_code() {
  return 0;
}
#endif

}  // namespace

std::span<const ProductCode> product_codes() {
  static const std::size_t kFirst = first_code();
  return std::span(kCodes).subspan(kFirst);
}

std::string product_library() {
  return fmt::format("products by Eigen {}.{}.{} with {}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                     EIGEN_MINOR_VERSION, product_codes().front().instructions);
}

}  // namespace rehearse
