#include "backend/host/wide_code.hpp"

#include <fmt/format.h>

#include <Eigen/Core>
#include <array>

namespace rehearse {

// Defined in wide_code_baseline.cpp, wide_code_avx2.cpp and wide_code_avx512.cpp.
WideCode wide_code_baseline();
#ifdef REHEARSE_WIDE_CODE
WideCode wide_code_avx2();
WideCode wide_code_avx512();
#endif

namespace {

#ifdef REHEARSE_WIDE_CODE
std::array<WideCode, 3> all_codes() {
  std::array<WideCode, 3> codes = {wide_code_avx512(), wide_code_avx2(), wide_code_baseline()};
  codes[0].instructions = "AVX-512";
  codes[1].instructions = "AVX2 and FMA";
  codes[2].instructions = "SSE2";
  return codes;
}

std::size_t first_code() {
  const bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  // The instructions that -mavx512f, -mavx512dq, -mavx512bw and -mavx512vl let the compiler use.
  if (fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return 0;
  return fma ? 1 : 2;
}
#else
std::array<WideCode, 1> all_codes() {
  std::array<WideCode, 1> codes = {wide_code_baseline()};
  codes[0].instructions = "the compiler's instructions";
  return codes;
}

std::size_t first_code() {
  return 0;
}
#endif

}  // namespace

std::span<const WideCode> wide_codes() {
  static const auto kCodes = all_codes();
  static const std::size_t kFirst = first_code();
  return std::span(kCodes).subspan(kFirst);
}

const WideCode& wide_code() {
  static const WideCode& kWidest = wide_codes().front();
  return kWidest;
}

std::string product_library() {
  return fmt::format("products by Eigen {}.{}.{} with {}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                     EIGEN_MINOR_VERSION, wide_code().instructions);
}

}  // namespace rehearse
