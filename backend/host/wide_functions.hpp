// Defines the inner loops of training for one instruction set. Each instruction set has one source file that
// includes this file, is compiled for these instructions, and renames Eigen's namespace beforehand. Otherwise
// the linker would keep a single copy of Eigen's functions, which the processor might not be able to run.
#pragma once

#ifndef Eigen
#error "Eigen needs a name for each set of instructions"
#endif

#include <Eigen/Core>

#include "backend/host/wide_code.hpp"

// Each instruction set has its own copy of these functions. NOLINTBEGIN(misc-definitions-in-headers)
namespace rehearse {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Operand = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
using Result = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;
using Vector = Eigen::Map<Eigen::ArrayXf>;
using Input = Eigen::Map<const Eigen::ArrayXf>;

template <class Left, class Right>
void multiply_with(const HostProduct& p, const Left& a, const Right& b) {
  Result c(p.c, p.m, p.n, Eigen::OuterStride<>(p.stride_c > 0 ? p.stride_c : p.n));
  if (p.beta == 0) {
    c.noalias() = p.alpha * a * b;
  } else {
    if (p.beta != 1) c *= p.beta;
    c.noalias() += p.alpha * a * b;
  }
}

Operand operand(const float* data, long rows, long columns, long stride) {
  return {data, rows, columns, Eigen::OuterStride<>(stride > 0 ? stride : columns)};
}

void multiply_all(const HostProduct& p) {
  const Operand a = operand(p.a, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.stride_a);
  const Operand b = operand(p.b, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.stride_b);
  if (p.transpose_a && p.transpose_b) {
    multiply_with(p, a.transpose(), b.transpose());
  } else if (p.transpose_a) {
    multiply_with(p, a.transpose(), b);
  } else if (p.transpose_b) {
    multiply_with(p, a, b.transpose());
  } else {
    multiply_with(p, a, b);
  }
}

// ----- sums and exponentials

void add_vector(const float* x, long count, float* y) {
  Vector(y, count) += Input(x, count);
}

void add_multiple_of(float factor, const float* x, long count, float* y) {
  Vector(y, count) += factor * Input(x, count);
}

void scale_vector(float factor, long count, float* x) {
  Vector(x, count) *= factor;
}

float inner_product_of(const float* x, const float* y, long count) {
  return (Input(x, count) * Input(y, count)).sum();
}

float maximum_of(const float* x, long count) {
  return Input(x, count).maxCoeff();
}

float exponentials_of(const float* x, float most, long count, float* y) {
  // A select() would not be vectorized. exp(-87) is nearly the smallest normal number.
  constexpr long kPiece = 16;  // the widest vectors; what is left over would be computed one by one
  const long whole = count / kPiece * kPiece;
  float sum = 0;
  if (whole > 0) {
    Vector result(y, whole);
    result = (Input(x, whole) - most).max(-87.0f).exp();
    sum = result.sum();
  }
  if (whole == count) return sum;
  Eigen::Array<float, kPiece, 1> rest = Eigen::Array<float, kPiece, 1>::Constant(most - 87.0f);
  rest.head(count - whole) = Input(x + whole, count - whole);
  rest = (rest - most).max(-87.0f).exp();
  Vector(y + whole, count - whole) = rest.head(count - whole);
  return sum + rest.head(count - whole).sum();
}

// ----- activation functions

void add_bias_to(const float* bias, long count, bool activate, float* y) {
  Vector row(y, count);
  row += Input(bias, count);
  // 0 below -b, (x + b)^2 / 4b up to b, x above.
  if (activate) {
    const auto knee = row.max(-kKnee).min(kKnee) + kKnee;
    row = knee * knee * (1 / (4 * kKnee)) + (row - kKnee).max(0.0f);
  }
}

void activation_backward_of(const float* y, long count, float* dy) {
  Vector(dy, count) *= (Input(y, count).min(kKnee) * (1 / kKnee)).sqrt();
}

void gelu_of(const float* x, long count, float* y) {
  const Input z(x, count);
  Vector(y, count) = 0.5f * z * (1.0f + (kGeluScale * (z + kGeluCubic * z * z * z)).tanh());
}

void gelu_backward_of(const float* x, const float* dy, long count, float* dx) {
  constexpr long kPiece = 256;  // elements whose tanh stays in the first-level cache
  float buffer[kPiece];
  for (long begin = 0; begin < count; begin += kPiece) {
    const long here = std::min(kPiece, count - begin);
    const Input z(x + begin, here), above(dy + begin, here);
    Vector t(buffer, here);
    t = (kGeluScale * (z + kGeluCubic * z * z * z)).tanh();
    Vector(dx + begin, here) = above * (0.5f * (1.0f + t) + 0.5f * z * (1.0f - t * t) * kGeluScale *
                                                                (1.0f + 3.0f * kGeluCubic * z * z));
  }
}

void gate_of(const float* gate, const float* x, long count, float* y) {
  const Input g(gate, count);
  Vector(y, count) = g / (1.0f + (-g).exp()) * Input(x, count);
}

void gate_backward_of(const float* gate, const float* x, const float* dy, long count, float* dgate,
                      float* dx) {
  constexpr long kPiece = 256;
  float buffer[kPiece];
  for (long begin = 0; begin < count; begin += kPiece) {
    const long here = std::min(kPiece, count - begin);
    const Input g(gate + begin, here), from(x + begin, here), above(dy + begin, here);
    Vector share(buffer, here);
    share = 1.0f / (1.0f + (-g).exp());
    // Each result may be stored in place of an input, so the one that needs more of them comes first.
    const Eigen::Array<float, Eigen::Dynamic, 1, 0, kPiece, 1> of_x = above * g * share;
    Vector(dgate + begin, here) = above * from * share * (1.0f + g * (1.0f - share));
    Vector(dx + begin, here) = of_x;
  }
}

// ----- norms and positions

void norm_of(const NormRow& row, float epsilon, float* y) {
  const Input x(row.x, row.width), gain(row.gain, row.width);
  const float width = static_cast<float>(row.width);
  const float mean = row.offset ? x.sum() / width : 0.0f;
  const float scale = 1 / std::sqrt((x - mean).square().sum() / width + epsilon);
  row.statistics[0] = mean;
  row.statistics[1] = scale;
  Vector result(y, row.width);
  result = (x - mean) * scale * gain;
  if (row.offset) result += Input(row.offset, row.width);
}

void norm_backward_of(const NormRow& row, const float* dy, float* dx) {
  const Input x(row.x, row.width), gain(row.gain, row.width), above(dy, row.width);
  const float width = static_cast<float>(row.width), mean = row.statistics[0], scale = row.statistics[1];
  const float sum = row.offset ? (above * gain).sum() / width : 0.0f;
  const float product = (above * gain * (x - mean)).sum() * scale / width;
  Vector(dx, row.width) = scale * (above * gain - sum - (x - mean) * (scale * product));
}

void norm_gradients_of(const NormRow& row, const float* dy, float* gain_gradient, float* offset_gradient) {
  const Input x(row.x, row.width), above(dy, row.width);
  Vector(gain_gradient, row.width) += above * (x - row.statistics[0]) * row.statistics[1];
  if (offset_gradient) Vector(offset_gradient, row.width) += above;
}

void rotate_pairs(const float* cosines, const float* sines, long count, float* one, float* other) {
  const Input cosine(cosines, count), sine(sines, count);
  Vector first(one, count), second(other, count);
  constexpr long kPiece = 256;
  float buffer[kPiece];
  for (long begin = 0; begin < count; begin += kPiece) {
    const long here = std::min(kPiece, count - begin);
    Vector before(buffer, here);
    before = first.segment(begin, here);
    first.segment(begin, here) =
        before * cosine.segment(begin, here) - second.segment(begin, here) * sine.segment(begin, here);
    second.segment(begin, here) =
        second.segment(begin, here) * cosine.segment(begin, here) + before * sine.segment(begin, here);
  }
}

void angles_of(float position, const float* frequencies, float sign, long count, float* cosines,
               float* sines) {
  const auto angle = position * Input(frequencies, count);
  Vector(cosines, count) = angle.cos();
  Vector(sines, count) = sign * angle.sin();
}

void score_slopes_of(const float* shares, const float* products, float mean, float scale, long count,
                     float* slopes) {
  Vector(slopes, count) = Input(shares, count) * (Input(products, count) - mean) * scale;
}

// ----- optimizers

void update_with(Optimizer kind, const StepConstants& c, const float* gradient, long count, float* weights,
                 float* first, float* second) {
  const Input g(gradient, count);
  Vector w(weights, count);
  switch (kind) {
    case Optimizer::sgd:
      w -= c.rate * g;
      return;
    case Optimizer::momentum: {
      Vector u(first, count);
      u = c.momentum * u + g;
      w -= c.rate * u;
      return;
    }
    case Optimizer::adam: {
      constexpr long kPiece = 1024;  // elements that stay in the first-level cache between the statements
      for (long begin = 0; begin < count; begin += kPiece) {
        const long here = std::min(kPiece, count - begin);
        const auto slope = g.segment(begin, here);
        Vector m(first + begin, here), v(second + begin, here);
        m = c.beta1 * m + (1 - c.beta1) * slope;
        v = c.beta2 * v + (1 - c.beta2) * slope * slope;
        w.segment(begin, here) -= c.rate * (m * c.correction1) / ((v * c.correction2).sqrt() + c.epsilon);
      }
      return;
    }
  }
}

WideCode code_here() {
  WideCode code;
  code.multiply = multiply_all;
  code.add = add_vector;
  code.add_multiple = add_multiple_of;
  code.scale = scale_vector;
  code.inner_product = inner_product_of;
  code.maximum = maximum_of;
  code.exponentials = exponentials_of;
  code.add_bias = add_bias_to;
  code.activation_backward = activation_backward_of;
  code.gelu = gelu_of;
  code.gelu_backward = gelu_backward_of;
  code.gate = gate_of;
  code.gate_backward = gate_backward_of;
  code.norm = norm_of;
  code.norm_backward = norm_backward_of;
  code.norm_gradients = norm_gradients_of;
  code.rotate = rotate_pairs;
  code.angles = angles_of;
  code.score_slopes = score_slopes_of;
  code.update = update_with;
  return code;
}

}  // namespace
}  // namespace rehearse
// NOLINTEND(misc-definitions-in-headers)
