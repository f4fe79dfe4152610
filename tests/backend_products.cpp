// Tests matrix products on processors, with every instruction set that this processor has, against sums in
// double precision.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "backend/host/products.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

TEST_CASE("products by every set of instructions are those of a sum, to rounding") {
  REQUIRE_FALSE(product_codes().empty());
  CHECK(product_library().find(std::string(product_codes().front().instructions)) != std::string::npos);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> number(-1, 1);
  const auto numbers = [&](long count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = number(random);
    return values;
  };
  // Sizes of one, of a few, and of no multiple of any vector width.
  for (const auto& [m, n, k] : {std::array<long, 3>{1, 1, 1}, {3, 5, 2}, {64, 48, 32}, {37, 101, 259}})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const float beta : {0.0f, 1.0f, 0.5f}) {
          const std::vector<float> a = numbers(m * k), b = numbers(k * n), before = numbers(m * n);
          for (const ProductCode& code : product_codes()) {
            CAPTURE(m, n, k, transpose_a, transpose_b, beta, code.instructions);
            std::vector<float> c = before;
            code.multiply({m, n, k, transpose_a, transpose_b, 0.75f, beta, a.data(), b.data(), c.data()});
            double worst = 0;
            for (long i = 0; i < m; ++i)
              for (long j = 0; j < n; ++j) {
                double sum = 0;
                for (long l = 0; l < k; ++l)
                  sum +=
                      static_cast<double>(a[static_cast<std::size_t>(transpose_a ? l * m + i : i * k + l)]) *
                      b[static_cast<std::size_t>(transpose_b ? j * k + l : l * n + j)];
                const auto at = static_cast<std::size_t>(i * n + j);
                worst = std::max(worst, std::abs(c[at] - (0.75 * sum + beta * before[at])));
              }
            // At most the rounding of k products below 1 that are added up one by one.
            CHECK(worst <= 6e-8 * static_cast<double>(k + 2) * static_cast<double>(k));
          }
        }
}
