// Defines operations on single elements, with the same code on processors and GPUs.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/training/optimizer.hpp"

#ifdef __CUDACC__
#define REHEARSE_ELEMENT __host__ __device__ inline
#else
#define REHEARSE_ELEMENT inline
#endif

namespace rehearse {

// The constants that one optimizer step needs besides the elements.
struct StepConstants {
  float rate, momentum, beta1, beta2, epsilon;
  float correction1 = 1, correction2 = 1;  // adam: 1 / (1 - beta^t)
};

inline StepConstants step_constants(const OptimizerSettings& o, long step) {
  StepConstants c{o.learning_rate, o.momentum, o.beta1, o.beta2, o.epsilon};
  c.correction1 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(o.beta1), step)));
  c.correction2 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(o.beta2), step)));
  return c;
}

// Updates one element; formulas in optimizer.hpp. `first` is momentum's u or Adam's m, `second` Adam's v.
template <Optimizer kind>
REHEARSE_ELEMENT void step_element(const StepConstants& c, float gradient, float& weight, float& first,
                                   float& second) {
  if constexpr (kind == Optimizer::sgd) {
    weight -= c.rate * gradient;
  } else if constexpr (kind == Optimizer::momentum) {
    first = c.momentum * first + gradient;
    weight -= c.rate * first;
  } else {
    first = c.beta1 * first + (1 - c.beta1) * gradient;
    second = c.beta2 * second + (1 - c.beta2) * gradient * gradient;
    weight -= c.rate * (first * c.correction1) / (sqrtf(second * c.correction2) + c.epsilon);
  }
}

// The upper half of a float.
struct Bfloat16 {
  std::uint16_t bits;
};

REHEARSE_ELEMENT float to_float(float x) {
  return x;
}
REHEARSE_ELEMENT float to_float(Bfloat16 x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x.bits) << 16;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

// Rounds to nearest, ties to even; NaN stays NaN.
template <class T>
REHEARSE_ELEMENT T rounded(float x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return x;
  } else {
    std::uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
    return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
  }
}

// SmeLU, a ReLU with a parabola as its knee: 0 below -b, x above b, (x + b)^2 / 4b in between. Its slope has
// no jump, so a rounding error never decides between two different gradients, as it does with a ReLU whose
// input is nearly 0 (Shamir, Lin and Coviello, "Smooth activations and reproducibility in deep networks",
// 2020). With ReLU, losses of the same training summed in another order differed by 1e-3 within 50 steps.
constexpr float kKnee = 0.5f;  // b

REHEARSE_ELEMENT float activated(float x) {
  if (x <= -kKnee) return 0;
  return x >= kKnee ? x : (x + kKnee) * (x + kKnee) / (4 * kKnee);
}
// Returns the slope (x + b) / 2b for a given output y.
REHEARSE_ELEMENT float slope_at_output(float y) {
  return y >= kKnee ? 1.0f : sqrtf(y / kKnee);
}

// Of GELU in its tanh form; the first one is sqrt(2 / pi).
constexpr float kGeluScale = 0.7978845608f, kGeluCubic = 0.044715f;

// Returns numbers that are spread evenly over [-1, 1), so that no product can be skipped: Knuth's
// multiplicative hash of the element's index.
REHEARSE_ELEMENT float filler(std::size_t i) {
  return static_cast<float>(static_cast<int>(static_cast<unsigned>(i) * 2654435769u)) * 0x1p-31f;
}

}  // namespace rehearse
