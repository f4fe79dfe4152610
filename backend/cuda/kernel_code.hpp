// Defines the device code of the training kernels, for nvcc and for anything else that runs it.
#pragma once

#include "backend/training/element_wise.hpp"

namespace rehearse::kernels::device {

constexpr int kThreads = 256, kWarp = 32;  // threads of a block; threads of a warp

struct Half {  // only filled; no kernel here computes with it
  std::uint16_t bits;
};

__device__ inline std::size_t first_element() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::size_t stride() {
  return static_cast<std::size_t>(gridDim.x) * blockDim.x;
}

template <class From, class To>
__global__ void convert(std::size_t n, const From* from, To* to) {
  for (std::size_t i = first_element(); i < n; i += stride()) to[i] = rounded<To>(to_float(from[i]));
}

template <class Y, class Bias>
__global__ void add_bias(std::size_t n, std::size_t columns, Y* y, const Bias* bias, bool activate) {
  for (std::size_t i = first_element(); i < n; i += stride()) {
    const float sum = to_float(y[i]) + to_float(bias[i % columns]);
    y[i] = rounded<Y>(activate ? activated(sum) : sum);
  }
}

template <class Y, class Gradient>
__global__ void activation_backward(std::size_t n, const Y* y, Gradient* gradient) {
  for (std::size_t i = first_element(); i < n; i += stride())
    gradient[i] = rounded<Gradient>(to_float(gradient[i]) * slope_at_output(to_float(y[i])));
}

// Sums with a block for kWarp columns and 8 rows at a time, so that the order of summands is always the same.
template <class Gradient, class Sum>
__global__ void column_sums(std::size_t rows, std::size_t columns, const Gradient* gradient, Sum* sums,
                            bool accumulate) {
  __shared__ float parts[kThreads / kWarp][kWarp];
  const std::size_t column = static_cast<std::size_t>(blockIdx.x) * kWarp + threadIdx.x;
  float sum = 0;
  if (column < columns)
    for (std::size_t row = threadIdx.y; row < rows; row += blockDim.y)
      sum += to_float(gradient[row * columns + column]);
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= columns) return;
  for (unsigned y = 1; y < blockDim.y; ++y) sum += parts[y][threadIdx.x];
  sums[column] = rounded<Sum>(accumulate ? to_float(sums[column]) + sum : sum);
}

struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Combines the `value` of every thread and returns the result to all threads. `shared` holds one number per
// warp.
template <class Combine>
__device__ float over_block(float value, float* shared, Combine combine) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  __syncthreads();  // until all have read the previous result
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = shared[0];
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) value = combine(value, shared[warp]);
  return value;
}

template <class X, class Y>
__global__ void largest(std::size_t n, const X* x, Y* y) {
  for (std::size_t i = first_element(); i < n; i += stride())
    y[i] = rounded<Y>(fmaxf(to_float(y[i]), to_float(x[i])));
}

template <class X, class Y>
__global__ void add(std::size_t n, const X* x, Y* y) {
  for (std::size_t i = first_element(); i < n; i += stride())
    y[i] = rounded<Y>(to_float(y[i]) + to_float(x[i]));
}

template <class X>
__global__ void scale(std::size_t n, float factor, X* x) {
  for (std::size_t i = first_element(); i < n; i += stride()) x[i] = rounded<X>(factor * to_float(x[i]));
}

template <Optimizer kind>
constexpr bool kMomentum = has_momentum(kind);
template <Optimizer kind>
constexpr bool kSecondMoment = has_second_moment(kind);

template <Optimizer kind, class Weight, class Gradient>
__global__ void update(std::size_t n, StepConstants constants, Weight* weights, float* master,
                       const Gradient* gradient, float* first, float* second) {
  for (std::size_t i = first_element(); i < n; i += stride()) {
    float w = master[i], m = 0, v = 0;
    if constexpr (kMomentum<kind>) m = first[i];
    if constexpr (kSecondMoment<kind>) v = second[i];
    step_element<kind>(constants, to_float(gradient[i]), w, m, v);
    master[i] = w;
    if constexpr (kMomentum<kind>) first[i] = m;
    if constexpr (kSecondMoment<kind>) second[i] = v;
    if constexpr (sizeof(Weight) < sizeof(float)) weights[i] = rounded<Weight>(w);
  }
}

__device__ inline void set_filler(std::size_t i, float& to) {
  to = filler(i);
}
__device__ inline void set_filler(std::size_t i, Bfloat16& to) {
  to = rounded<Bfloat16>(filler(i));
}
__device__ inline void set_filler(std::size_t i, Half& to) {  // sign and ten bits: magnitudes from 0.5 to 1
  const auto bits = static_cast<unsigned>(i) * 2654435769u >> 16;
  to.bits = static_cast<std::uint16_t>((bits & 0x83ffu) | 0x3800u);
}

template <class T>
__global__ void fill(std::size_t n, T* array) {
  for (std::size_t i = first_element(); i < n; i += stride()) set_filler(i, array[i]);
}

inline __global__ void nothing() {}

}  // namespace rehearse::kernels::device
