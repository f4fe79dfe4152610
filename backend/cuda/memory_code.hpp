// Defines the device code of the memory-bound kernels that replay models: element-wise kernels and column
// sums here, norms and softmax in row_code.hpp, batch norm in channel_code.hpp. Each kernel moves the bytes
// that models/kernel.hpp counts for its form; second reads hit the caches. Threads load and store packs of V
// neighbouring elements.
#pragma once

#include "backend/cuda/kernel_code.hpp"
#include "backend/runtime/half_bits.hpp"

namespace rehearse::kernels::device {

template <class T, int V>
struct alignas(V * sizeof(T)) Pack {
  T at[V];
};

__device__ inline float number(float x) {
  return x;
}
__device__ inline float number(Bfloat16 x) {
  return to_float(x);
}
__device__ inline float number(Half x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
  return result;
#else
  return float_of_half(x.bits);
#endif
}

// put() rounds to nearest, ties to even, with an instruction on GPUs that have one.
__device__ inline void put(float x, float& to) {
  to = x;
}
__device__ inline void put(float x, Bfloat16& to) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  std::uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  to.bits = bits;
#else
  to = rounded<Bfloat16>(x);
#endif
}
__device__ inline void put(float x, Half& to) {
#ifdef __CUDA_ARCH__
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  to.bits = bits;
#else
  to.bits = half_bits(x);
#endif
}

constexpr float kEpsilon = 1e-5f;  // added to the variance in norms

__device__ inline float inverse_deviation(float squares, float mean, float count) {
  return 1 / sqrtf(fmaxf(squares / count - mean * mean, 0.0f) + kEpsilon);
}

// `from` and `to` hold arrays of `packs` packs, one after the other; the last may be incomplete. Adds the
// input arrays (`read` packs in all) element by element, multiplies by `factor`, and writes the result to
// each output array (`written` packs in all).
template <class T, int V>
__global__ void element_wise(std::size_t packs, std::size_t read, std::size_t written, float factor,
                             const Pack<T, V>* from, Pack<T, V>* to) {
  for (std::size_t i = first_element(); i < packs; i += stride()) {
    float sums[V] = {};
    for (std::size_t j = i; j < read; j += packs) {
      const Pack<T, V> pack = from[j];
      for (int v = 0; v < V; ++v) sums[v] += number(pack.at[v]);
    }
    Pack<T, V> result;
    for (int v = 0; v < V; ++v) put(factor * sums[v], result.at[v]);
    for (std::size_t j = i; j < written; j += packs) to[j] = result;
  }
}

// Sums over rows, with blocks that handle kWarp packs of columns and 8 rows at a time. Each of gridDim.y
// blocks writes a partial sum of dy and, with x, of dy times the normalized x.
template <class T, int V, bool with_x>
__global__ void column_parts(std::size_t rows, std::size_t width, const T* x, const float* statistics,
                             const T* dy, float* parts) {
  constexpr int kSums = with_x ? 2 : 1, kRows = kThreads / kWarp;
  __shared__ float shared[kRows][kWarp][kSums * V];
  const std::size_t packs = width / V;
  const std::size_t column = static_cast<std::size_t>(blockIdx.x) * kWarp + threadIdx.x;
  using Own = Pack<T, V>;
  float sums[kSums * V] = {};
  if (column < packs)
    for (std::size_t row = static_cast<std::size_t>(blockIdx.y) * kRows + threadIdx.y; row < rows;
         row += static_cast<std::size_t>(gridDim.y) * kRows) {
      const Own d = reinterpret_cast<const Own*>(dy + row * width)[column];
      for (int v = 0; v < V; ++v) sums[v] += number(d.at[v]);
      if constexpr (with_x) {
        const Own a = reinterpret_cast<const Own*>(x + row * width)[column];
        const float mean = statistics[2 * row], inverse = statistics[2 * row + 1];
        for (int v = 0; v < V; ++v) sums[V + v] += number(d.at[v]) * (number(a.at[v]) - mean) * inverse;
      }
    }
  for (int s = 0; s < kSums * V; ++s) shared[threadIdx.y][threadIdx.x][s] = sums[s];
  __syncthreads();
  if (threadIdx.y > 0 || column >= packs) return;
  for (int s = 0; s < kSums * V; ++s) {
    float sum = 0;
    for (int y = 0; y < kRows; ++y) sum += shared[y][threadIdx.x][s];
    parts[(static_cast<std::size_t>(blockIdx.y) * kSums + s / V) * width + column * V + s % V] = sum;
  }
}
// Adds the partial sums, always in the same order.
inline __global__ void add_parts(std::size_t count, std::size_t width, const float* parts, float* sums) {
  for (std::size_t i = first_element(); i < width; i += stride()) {
    float sum = 0;
    for (std::size_t part = 0; part < count; ++part) sum += parts[part * width + i];
    sums[i] = sum;
  }
}

}  // namespace rehearse::kernels::device
