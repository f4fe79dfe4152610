// Declares the inner loops of training on processors: matrix products and functions of vectors, computed with
// Eigen. They are compiled once for each relevant instruction set; the widest one that this processor
// supports is chosen at run time.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "backend/training/element_wise.hpp"

namespace rehearse {

// c = alpha a b + beta c in fp32, all row-major: a is m x k (k x m if transposed), b is k x n (n x k if
// transposed), c is m x n.
struct HostProduct {
  long m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1, beta = 0;
  const float *a = nullptr, *b = nullptr;
  float* c = nullptr;
  long stride_a = 0, stride_b = 0, stride_c = 0;  // elements from one stored row to the next; 0: no gaps
};

// The arrays of one row of a norm, `width` elements each. Without `offset`, an RMS norm; else a layer norm.
// The statistics are the row's mean (0 in an RMS norm) and 1 / standard deviation.
struct NormRow {
  long width = 0;
  const float *x = nullptr, *gain = nullptr, *offset = nullptr;
  float* statistics = nullptr;
};

// The functions for one instruction set. Vectors have `count` elements and may only overlap where they are
// equal.
struct WideCode {
  std::string_view instructions;  // "AVX2 and FMA"
  void (*multiply)(const HostProduct& product) = nullptr;

  void (*add)(const float* x, long count, float* y) = nullptr;                         // y += x
  void (*add_multiple)(float factor, const float* x, long count, float* y) = nullptr;  // y += factor x
  void (*scale)(float factor, long count, float* x) = nullptr;                         // x *= factor
  float (*inner_product)(const float* x, const float* y, long count) = nullptr;

  float (*maximum)(const float* x, long count) = nullptr;  // of at least one element
  // y = exp(x - most), but at least exp(-87); returns the sum of y.
  float (*exponentials)(const float* x, float most, long count, float* y) = nullptr;

  // The perceptron's activation function and its slope (element_wise.hpp).
  void (*add_bias)(const float* bias, long count, bool activate, float* y) = nullptr;  // of one row
  void (*activation_backward)(const float* y, long count, float* dy) = nullptr;

  // Formulas in row_elements.hpp: GELU, and the gate of SwiGLU.
  void (*gelu)(const float* x, long count, float* y) = nullptr;
  void (*gelu_backward)(const float* x, const float* dy, long count, float* dx) = nullptr;
  void (*gate)(const float* gate, const float* x, long count, float* y) = nullptr;
  void (*gate_backward)(const float* gate, const float* x, const float* dy, long count, float* dgate,
                        float* dx) = nullptr;

  // Formulas in token_elements.hpp.
  void (*norm)(const NormRow& row, float epsilon, float* y) = nullptr;
  void (*norm_backward)(const NormRow& row, const float* dy, float* dx) = nullptr;
  // Adds a row's gradients of gain and offset (null in an RMS norm) to their sums.
  void (*norm_gradients)(const NormRow& row, const float* dy, float* gain_gradient,
                         float* offset_gradient) = nullptr;
  // Rotates the pairs (one[i], other[i]) by angles of the given cosines and sines.
  void (*rotate)(const float* cosines, const float* sines, long count, float* one, float* other) = nullptr;
  // cosines[i] = cos(position frequencies[i]); sines[i] = sign sin(...).
  void (*angles)(float position, const float* frequencies, float sign, long count, float* cosines,
                 float* sines) = nullptr;

  // slopes = shares (products - mean) scale: the gradients of scores from those of their softmax.
  void (*score_slopes)(const float* shares, const float* products, float mean, float scale, long count,
                       float* slopes) = nullptr;

  // Applies an optimizer step (step_element() in element_wise.hpp); arrays that the optimizer lacks are null.
  void (*update)(Optimizer kind, const StepConstants& constants, const float* gradient, long count,
                 float* weights, float* first, float* second) = nullptr;
};

// Returns the codes that this processor can run, the widest first. Their results differ by rounding.
std::span<const WideCode> wide_codes();

// Returns the widest code.
const WideCode& wide_code();

// Returns a text such as "products by Eigen 3.4.0 with AVX-512".
std::string product_library();

}  // namespace rehearse
