// Defines the device code of kernels on rows: softmax and layer norm, which moves the same number of bytes as
// RMS norm.
#pragma once

#include "backend/cuda/memory_code.hpp"

namespace rehearse::kernels::device {

// In these kernels blockDim.x threads, a warp or the complete block, handle a row, and a block handles
// blockDim.y rows.
__device__ inline std::size_t own_row() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.y + threadIdx.y;
}

template <class Combine>
__device__ float over_row(float value, float* shared, Combine combine) {
  if (blockDim.x > static_cast<unsigned>(kWarp)) return over_block(value, shared, combine);
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}

// `statistics` gets the mean and 1 / standard deviation of each row.
template <class T, int V>
__global__ void norm_forward(std::size_t rows, std::size_t width, const T* x, const T* gain, const T* bias,
                             T* y, float* statistics) {
  __shared__ float shared[kThreads / kWarp];
  const std::size_t row = own_row(), packs = width / V;
  if (row >= rows) return;
  using Own = Pack<T, V>;
  const auto* const from = reinterpret_cast<const Own*>(x + row * width);
  float sum = 0, squares = 0;
  for (std::size_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const Own pack = from[i];
    for (int v = 0; v < V; ++v) {
      sum += number(pack.at[v]);
      squares += number(pack.at[v]) * number(pack.at[v]);
    }
  }
  const float mean = over_row(sum, shared, Sum()) / static_cast<float>(width);
  const float inverse = inverse_deviation(over_row(squares, shared, Sum()), mean, static_cast<float>(width));
  for (std::size_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const Own pack = from[i], g = reinterpret_cast<const Own*>(gain)[i],
              b = reinterpret_cast<const Own*>(bias)[i];
    Own result;
    for (int v = 0; v < V; ++v)
      put((number(pack.at[v]) - mean) * inverse * number(g.at[v]) + number(b.at[v]), result.at[v]);
    reinterpret_cast<Own*>(y + row * width)[i] = result;
  }
  if (threadIdx.x > 0) return;
  statistics[2 * row] = mean;
  statistics[2 * row + 1] = inverse;
}

template <class T, int V>
__global__ void norm_backward(std::size_t rows, std::size_t width, const T* x, const T* dy, const T* gain,
                              const float* statistics, T* dx) {
  __shared__ float shared[kThreads / kWarp];
  const std::size_t row = own_row(), packs = width / V;
  if (row >= rows) return;
  using Own = Pack<T, V>;
  const auto* const input = reinterpret_cast<const Own*>(x + row * width);
  const auto* const gradient = reinterpret_cast<const Own*>(dy + row * width);
  const auto* const gains = reinterpret_cast<const Own*>(gain);
  const float mean = statistics[2 * row], inverse = statistics[2 * row + 1];
  float sum = 0, along = 0;
  for (std::size_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const Own a = input[i], d = gradient[i], g = gains[i];
    for (int v = 0; v < V; ++v) {
      const float slope = number(d.at[v]) * number(g.at[v]);
      sum += slope;
      along += slope * (number(a.at[v]) - mean) * inverse;
    }
  }
  sum = over_row(sum, shared, Sum()) / static_cast<float>(width);
  along = over_row(along, shared, Sum()) / static_cast<float>(width);
  for (std::size_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const Own a = input[i], d = gradient[i], g = gains[i];
    Own result;
    for (int v = 0; v < V; ++v) {
      const float normal = (number(a.at[v]) - mean) * inverse;
      put(inverse * (number(d.at[v]) * number(g.at[v]) - sum - normal * along), result.at[v]);
    }
    reinterpret_cast<Own*>(dx + row * width)[i] = result;
  }
}

// Softmax of `scale` times x.
template <class T, int V>
__global__ void softmax_forward(std::size_t rows, std::size_t width, float scale, const T* x, T* y) {
  __shared__ float shared[kThreads / kWarp];
  const std::size_t row = own_row(), packs = width / V;
  if (row >= rows) return;
  using Own = Pack<T, V>;
  const auto* const from = reinterpret_cast<const Own*>(x + row * width);
  float most = -INFINITY, sum = 0;
  for (std::size_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const Own pack = from[i];
    for (int v = 0; v < V; ++v) most = fmaxf(most, scale * number(pack.at[v]));
  }
  most = over_row(most, shared, Largest());
  for (std::size_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const Own pack = from[i];
    for (int v = 0; v < V; ++v) sum += expf(scale * number(pack.at[v]) - most);
  }
  sum = over_row(sum, shared, Sum());
  for (std::size_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const Own pack = from[i];
    Own result;
    for (int v = 0; v < V; ++v) put(expf(scale * number(pack.at[v]) - most) / sum, result.at[v]);
    reinterpret_cast<Own*>(y + row * width)[i] = result;
  }
}

// `capped` is null, or the output of soft-capping's tanh.
template <class T, int V>
__global__ void softmax_backward(std::size_t rows, std::size_t width, float scale, const T* y, const T* dy,
                                 const T* capped, T* dx) {
  __shared__ float shared[kThreads / kWarp];
  const std::size_t row = own_row(), packs = width / V;
  if (row >= rows) return;
  using Own = Pack<T, V>;
  const auto* const result_of = reinterpret_cast<const Own*>(y + row * width);
  const auto* const gradient = reinterpret_cast<const Own*>(dy + row * width);
  float along = 0;
  for (std::size_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const Own p = result_of[i], d = gradient[i];
    for (int v = 0; v < V; ++v) along += number(p.at[v]) * number(d.at[v]);
  }
  along = over_row(along, shared, Sum());
  for (std::size_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const Own p = result_of[i], d = gradient[i];
    Own t = {}, result;
    if (capped != nullptr) t = reinterpret_cast<const Own*>(capped + row * width)[i];
    for (int v = 0; v < V; ++v)
      put(scale * number(p.at[v]) * (number(d.at[v]) - along) * (1 - number(t.at[v]) * number(t.at[v])),
          result.at[v]);
    reinterpret_cast<Own*>(dx + row * width)[i] = result;
  }
}

}  // namespace rehearse::kernels::device
