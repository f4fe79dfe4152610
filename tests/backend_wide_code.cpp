// Tests the inner loops of training on processors, with every instruction set that this processor has,
// against formulas in double precision.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "backend/host/wide_code.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

using Vector = std::vector<float>;

class RandomNumbers {
public:
  explicit RandomNumbers(float largest) : number_(-largest, largest) {}
  Vector operator()(long count) {
    Vector values(static_cast<std::size_t>(count));
    for (float& value : values) value = number_(random_);
    return values;
  }

private:
  std::mt19937 random_{1};
  std::uniform_real_distribution<float> number_;
};

// A function of vectors that is compared with a formula: it gets inputs x, y and z in [-6, 6], overwrites
// some, and element i of x (and, if `second` is set, of y) is compared with the formula's result.
struct VectorCase {
  std::string name;
  std::function<void(const WideCode& code, Vector& x, Vector& y, Vector& z)> compute;
  std::function<double(double x, double y, double z)> first, second;
};

long size_of(const Vector& x) {
  return static_cast<long>(x.size());
}

double right_gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
}

double right_gelu_slope(double x) {
  const double step = 1e-5;
  return (right_gelu(x + step) - right_gelu(x - step)) / (2 * step);
}

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

double silu_slope(double x) {
  return logistic(x) * (1 + x * (1 - logistic(x)));
}

// The perceptron's activation function: formula in element_wise.hpp.
double knee(double x) {
  return x <= -0.5 ? 0 : x >= 0.5 ? x : (x + 0.5) * (x + 0.5) / 2;
}

OptimizerSettings settings_of_optimizer(Optimizer kind) {
  return default_settings(kind);
}

VectorCase update_case(const std::string& name, Optimizer kind) {
  // Step 3; the gradient is z, the weight x, momentum y, and Adam's second moment y^2.
  const OptimizerSettings o = settings_of_optimizer(kind);
  const auto compute = [=](const WideCode& code, Vector& x, Vector& y, Vector& z) {
    Vector squares = y;
    for (float& square : squares) square *= square;
    code.update(kind, step_constants(o, 3), z.data(), size_of(x), x.data(),
                has_momentum(kind) ? y.data() : nullptr, has_second_moment(kind) ? squares.data() : nullptr);
  };
  const auto momentum = [=](double, double y, double z) {
    if (kind == Optimizer::sgd) return y;
    return kind == Optimizer::momentum ? o.momentum * y + z : o.beta1 * y + (1 - o.beta1) * z;
  };
  const auto weight = [=](double x, double y, double z) {
    const double u = momentum(x, y, z);
    if (kind == Optimizer::sgd) return x - o.learning_rate * z;
    if (kind == Optimizer::momentum) return x - o.learning_rate * u;
    const double v = o.beta2 * y * y + (1 - o.beta2) * z * z;
    return x - o.learning_rate * (u / (1 - std::pow(o.beta1, 3))) /
                   (std::sqrt(v / (1 - std::pow(o.beta2, 3))) + o.epsilon);
  };
  return {name, compute, weight, momentum};
}

std::vector<VectorCase> vector_cases() {
  const auto second = [](double, double y, double) { return y; };
  return {
      {"add", [](const WideCode& c, Vector& x, Vector& y, Vector&) { c.add(y.data(), size_of(x), x.data()); },
       [](double x, double y, double) { return x + y; }, second},
      {"add multiple",
       [](const WideCode& c, Vector& x, Vector& y, Vector&) {
         c.add_multiple(-0.5f, y.data(), size_of(x), x.data());
       },
       [](double x, double y, double) { return x - 0.5 * y; }, second},
      {"scale", [](const WideCode& c, Vector& x, Vector&, Vector&) { c.scale(3, size_of(x), x.data()); },
       [](double x, double, double) { return 3 * x; }, second},
      {"exponentials",
       [](const WideCode& c, Vector& x, Vector&, Vector&) {
         c.exponentials(x.data(), 6, size_of(x), x.data());
       },
       [](double x, double, double) { return std::exp(x - 6); }, second},
      {"exponentials of nothing",
       [](const WideCode& c, Vector& x, Vector&, Vector&) {
         c.exponentials(x.data(), 200, size_of(x), x.data());
       },
       [](double, double, double) { return 0.0; }, second},
      {"bias",
       [](const WideCode& c, Vector& x, Vector& y, Vector&) {
         c.add_bias(y.data(), size_of(x), false, x.data());
       },
       [](double x, double y, double) { return x + y; }, second},
      {"bias and activation",
       [](const WideCode& c, Vector& x, Vector& y, Vector&) {
         c.add_bias(y.data(), size_of(x), true, x.data());
       },
       [](double x, double y, double) { return knee(x + y); }, second},
      {"activation backward",
       [](const WideCode& c, Vector& x, Vector& y, Vector&) {
         for (float& output : y) output = std::max(output, 0.0f);
         c.activation_backward(y.data(), size_of(x), x.data());
       },
       [](double x, double y, double) { return x * (y >= 0.5 ? 1 : std::sqrt(std::max(y, 0.0) / 0.5)); },
       [](double, double y, double) { return std::max(y, 0.0); }},
      {"GELU",
       [](const WideCode& c, Vector& x, Vector& y, Vector&) { c.gelu(y.data(), size_of(x), x.data()); },
       [](double, double y, double) { return right_gelu(y); }, second},
      {"GELU backward in place",
       [](const WideCode& c, Vector& x, Vector& y, Vector&) {
         c.gelu_backward(y.data(), x.data(), size_of(x), x.data());
       },
       [](double x, double y, double) { return x * right_gelu_slope(y); }, second},
      {"gate",
       [](const WideCode& c, Vector& x, Vector& y, Vector&) {
         c.gate(y.data(), x.data(), size_of(x), x.data());
       },
       [](double x, double y, double) { return x * y * logistic(y); }, second},
      {"gate backward in place",
       [](const WideCode& c, Vector& x, Vector& y, Vector& z) {
         c.gate_backward(y.data(), x.data(), z.data(), size_of(x), y.data(), x.data());
       },
       [](double, double y, double z) { return z * y * logistic(y); },
       [](double x, double y, double z) { return z * x * silu_slope(y); }},
      {"angles and rotation",
       [](const WideCode& c, Vector& x, Vector& y, Vector& z) {
         Vector cosines(x.size()), sines(x.size());
         c.angles(10, z.data(), -1, size_of(x), cosines.data(), sines.data());
         c.rotate(cosines.data(), sines.data(), size_of(x), x.data(), y.data());
       },
       [](double x, double y, double z) { return x * std::cos(10 * z) + y * std::sin(10 * z); },
       [](double x, double y, double z) { return y * std::cos(10 * z) - x * std::sin(10 * z); }},
      {"slopes of scores",
       [](const WideCode& c, Vector& x, Vector& y, Vector& z) {
         c.score_slopes(y.data(), z.data(), 0.25f, 0.125f, size_of(x), x.data());
       },
       [](double, double y, double z) { return y * (z - 0.25) * 0.125; }, second},
      update_case("SGD", Optimizer::sgd),
      update_case("momentum", Optimizer::momentum),
      update_case("Adam", Optimizer::adam),
  };
}

}  // namespace

TEST_CASE("products by every set of instructions are those of a sum, to rounding") {
  REQUIRE_FALSE(wide_codes().empty());
  CHECK(product_library().find(std::string(wide_codes().front().instructions)) != std::string::npos);
  RandomNumbers numbers(1);
  // Sizes of one, of a few, and of no multiple of any vector width.
  for (const auto& [m, n, k] : {std::array<long, 3>{1, 1, 1}, {3, 5, 2}, {64, 48, 32}, {37, 101, 259}})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const float beta : {0.0f, 1.0f, 0.5f}) {
          const std::vector<float> a = numbers(m * k), b = numbers(k * n), before = numbers(m * n);
          for (const WideCode& code : wide_codes()) {
            CAPTURE(m, n, k, transpose_a, transpose_b, beta, code.instructions);
            std::vector<float> c = before;
            HostProduct product{m, n, k, transpose_a, transpose_b, 0.75f, beta, a.data(), b.data(), c.data()};
            code.multiply(product);
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

TEST_CASE("functions of vectors by every set of instructions are those of their formulas, to rounding") {
  RandomNumbers numbers(6);
  // Sizes of one, of a few, and of no multiple of any vector width or piece.
  for (const long count : {1L, 3L, 16L, 37L, 259L, 1027L}) {
    const Vector x = numbers(count), y = numbers(count), z = numbers(count);
    for (const VectorCase& test : vector_cases())
      for (const WideCode& code : wide_codes()) {
        CAPTURE(count, test.name, code.instructions);
        Vector first = x, second = y, third = z;
        test.compute(code, first, second, third);
        double worst = 0;
        for (std::size_t i = 0; i < first.size(); ++i) {
          const auto difference = [](double found, double right) {
            return std::abs(found - right) / (1 + std::abs(right));
          };
          worst = std::max({worst, difference(first[i], test.first(x[i], y[i], z[i])),
                            difference(second[i], test.second(x[i], y[i], z[i]))});
        }
        // Angles of up to 60 are rounded to 60 x 6e-8, and multiply numbers of up to 6; all else errs less.
        CHECK(worst < 2.5e-5);
      }
  }
}

TEST_CASE("sums of vectors and norms by every set of instructions are those of their formulas, to rounding") {
  RandomNumbers numbers(2);
  for (const long count : {1L, 3L, 16L, 37L, 259L, 1027L}) {
    const Vector x = numbers(count), gain = numbers(count), offset = numbers(count), dy = numbers(count);
    for (const WideCode& code : wide_codes())
      for (const bool centred : {false, true}) {
        CAPTURE(count, centred, code.instructions);
        const double n = static_cast<double>(count);
        double product = 0, sum = 0, squares = 0, exponentials = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
          product += static_cast<double>(x[i]) * gain[i];
          sum += x[i];
          exponentials += std::exp(static_cast<double>(x[i]) - 2);
        }
        const double mean = centred ? sum / n : 0;
        for (const float value : x) squares += (value - mean) * (value - mean);
        const double scale = 1 / std::sqrt(squares / n + 1e-5);
        CHECK(code.maximum(x.data(), count) == *std::max_element(x.begin(), x.end()));
        CHECK_THAT(code.inner_product(x.data(), gain.data(), count),
                   Catch::Matchers::WithinAbs(product, 1e-5 * n));
        Vector powers(x.size());
        CHECK_THAT(code.exponentials(x.data(), 2, count, powers.data()),
                   Catch::Matchers::WithinRel(exponentials, 1e-5));

        std::array<float, 2> statistics{};
        const NormRow row{count, x.data(), gain.data(), centred ? offset.data() : nullptr, statistics.data()};
        Vector y(x.size()), dx(x.size()), gain_gradient(x.size(), 1.0f), offset_gradient(x.size(), 2.0f);
        code.norm(row, 1e-5f, y.data());
        code.norm_backward(row, dy.data(), dx.data());
        code.norm_gradients(row, dy.data(), gain_gradient.data(), centred ? offset_gradient.data() : nullptr);
        double slope_sum = 0, slope_product = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
          slope_sum += static_cast<double>(dy[i]) * gain[i];
          slope_product += static_cast<double>(dy[i]) * gain[i] * (x[i] - mean) * scale;
        }
        for (std::size_t i = 0; i < x.size(); ++i) {
          const double normal = (x[i] - mean) * scale;
          // Alone in its row of a layer norm, an element is its mean: the scale is 316, and so are its
          // errors.
          const double allowed = 4e-6 * scale * scale;
          CHECK_THAT(
              y[i], Catch::Matchers::WithinAbs(normal * gain[i] + (centred ? offset[i] : 0), allowed + 1e-5));
          CHECK_THAT(dx[i], Catch::Matchers::WithinAbs(
                                scale * (static_cast<double>(dy[i]) * gain[i] -
                                         (centred ? slope_sum / n : 0) - normal * slope_product / n),
                                allowed + 1e-4));
          CHECK_THAT(gain_gradient[i], Catch::Matchers::WithinAbs(1 + dy[i] * normal, allowed + 1e-5));
          CHECK_THAT(offset_gradient[i], Catch::Matchers::WithinAbs(2 + (centred ? dy[i] : 0), 1e-5));
        }
      }
  }
}
