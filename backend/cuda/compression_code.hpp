// Defines the device code of the gradient compression kernels. training/gradient_compression.cpp, which does
// the same on processors, explains their purpose. Results are the same in every run.
#pragma once

#include "backend/cuda/kernel_code.hpp"
#include "backend/runtime/half_bits.hpp"

namespace rehearse::kernels::device {

inline __global__ void to_halves(std::size_t n, const float* from, std::uint16_t* to) {
  for (std::size_t i = first_element(); i < n; i += stride()) to[i] = half_bits(from[i]);
}
inline __global__ void from_halves(std::size_t n, const std::uint16_t* from, float* to) {
  for (std::size_t i = first_element(); i < n; i += stride()) to[i] = float_of_half(from[i]);
}

inline __global__ void clear(std::size_t n, float* x) {
  for (std::size_t i = first_element(); i < n; i += stride()) x[i] = 0;
}

inline __global__ void add_scaled(std::size_t n, float factor, const float* x, float* y) {
  for (std::size_t i = first_element(); i < n; i += stride()) y[i] += factor * x[i];
}

// Returns the sum over a block of kThreads threads to all of them; the order of summands is always the same.
__device__ inline double block_sum(double value) {
  __shared__ double parts[kThreads];
  __syncthreads();  // until all have read the previous result
  parts[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  return parts[0];
}

// Writes one partial sum for each block.
inline __global__ void sums_of_squares(std::size_t n, const float* x, double* sums) {
  double sum = 0;
  for (std::size_t i = first_element(); i < n; i += stride())
    sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
// Combines `count` partial sums; runs in one block, which has at least `count` threads.
inline __global__ void root_mean_square(std::size_t n, unsigned count, const double* sums, float* root) {
  const double sum = block_sum(threadIdx.x < count ? sums[threadIdx.x] : 0.0);
  if (threadIdx.x == 0) *root = n == 0 ? 0.0f : static_cast<float>(sqrt(sum / static_cast<double>(n)));
}

// Packs signs, one byte per thread: there are `shares` shares of `share` numbers each, whose blocks begin
// `block` floats apart and hold the scale, then a bit for each sign. Leaves in `numbers` the error of that
// representation. The sign of 0 is +.
inline __global__ void put_signs(std::size_t n, std::size_t share, std::size_t shares, const float* scale,
                                 float* numbers, float* blocks, std::size_t block) {
  const std::size_t bytes = share / 8;
  for (std::size_t b = first_element(); b < bytes * shares; b += stride()) {
    const std::size_t own = b / bytes, byte = b % bytes, first = own * share + 8 * byte;
    float* const to = blocks + own * block;
    if (byte == 0) *to = *scale;
    if (first >= n) continue;
    unsigned signs = 0;
    for (unsigned bit = 0; bit < 8 && first + bit < n; ++bit) {
      const bool negative = numbers[first + bit] < 0;
      signs |= (negative ? 1u : 0u) << bit;
      numbers[first + bit] -= negative ? -*scale : *scale;
    }
    reinterpret_cast<unsigned char*>(to + 1)[byte] = static_cast<unsigned char>(signs);
  }
}

__device__ inline float signed_scale(const float* block, std::size_t i) {
  const unsigned byte = reinterpret_cast<const unsigned char*>(block + 1)[i / 8];
  return ((byte >> (i % 8)) & 1u) != 0 ? -*block : *block;
}

// Adds the sum of `count` blocks, which begin `apart` floats apart, to `to`.
inline __global__ void add_signs(std::size_t n, std::size_t count, const float* blocks, std::size_t apart,
                                 float* to) {
  for (std::size_t i = first_element(); i < n; i += stride()) {
    float sum = 0;
    for (std::size_t r = 0; r < count; ++r) sum += signed_scale(blocks + r * apart, i);
    to[i] += sum;
  }
}
inline __global__ void take_signs(std::size_t n, std::size_t share, const float* blocks, std::size_t block,
                                  float* to) {
  for (std::size_t i = first_element(); i < n; i += stride())
    to[i] = signed_scale(blocks + i / share * block, i % share);
}

// State of a search for the k largest magnitudes by their bits, eight at a time from the top.
constexpr unsigned kDigits = 256;
struct Search {
  unsigned prefix;     // the bits of the smallest taken magnitude that are known so far
  unsigned remaining;  // how many numbers with this prefix are taken
};

__device__ inline unsigned magnitude(float x) {
  return bits_of(x) & 0x7fffffffu;
}

inline __global__ void begin_search(unsigned k, Search* search, unsigned* histogram) {
  histogram[threadIdx.x] = 0;
  if (threadIdx.x == 0) *search = {0, k};
}
// Counts how often each digit follows the prefix. The counts do not depend on the order in which threads add.
inline __global__ void count_digits(std::size_t n, const float* x, const Search* search, unsigned shift,
                                    unsigned* histogram) {
  __shared__ unsigned counts[kDigits];
  counts[threadIdx.x] = 0;
  __syncthreads();
  const unsigned above = shift + 8 < 32 ? search->prefix >> (shift + 8) : 0;
  for (std::size_t i = first_element(); i < n; i += stride()) {
    const unsigned m = magnitude(x[i]);
    if (shift + 8 >= 32 || m >> (shift + 8) == above) atomicAdd(&counts[(m >> shift) & 0xffu], 1u);
  }
  __syncthreads();
  if (counts[threadIdx.x] > 0) atomicAdd(&histogram[threadIdx.x], counts[threadIdx.x]);
}
// Extends the prefix by a digit; runs in one thread.
inline __global__ void choose_digit(unsigned shift, Search* search, unsigned* histogram) {
  unsigned digit = kDigits - 1;
  for (; digit > 0 && histogram[digit] < search->remaining; --digit) search->remaining -= histogram[digit];
  search->prefix |= digit << shift;
  for (unsigned i = 0; i < kDigits; ++i) histogram[i] = 0;
}

// Counts, for one chunk of neighbours per thread, the elements above the smallest taken magnitude and those
// equal to it.
inline __global__ void count_chunks(std::size_t n, std::size_t chunk, const float* x, const Search* search,
                                    unsigned* above, unsigned* at) {
  const std::size_t own = first_element();
  unsigned larger = 0, equal = 0;
  for (std::size_t i = own * chunk; i < n && i < (own + 1) * chunk; ++i) {
    const unsigned m = magnitude(x[i]);
    larger += m > search->prefix ? 1u : 0u;
    equal += m == search->prefix ? 1u : 0u;
  }
  above[own] = larger;
  at[own] = equal;
}
// Replaces counts by the sums of the counts before them; runs with a block of kThreads threads for each of
// the two arrays.
inline __global__ void sum_before(std::size_t count, unsigned* above, unsigned* at) {
  __shared__ unsigned sums[kThreads];
  unsigned* const counts = blockIdx.x == 0 ? above : at;
  const std::size_t own = (count + kThreads - 1) / kThreads, first = threadIdx.x * own;
  unsigned sum = 0;
  for (std::size_t i = first; i < count && i < first + own; ++i) sum += counts[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  unsigned before = 0;
  for (unsigned t = 0; t < threadIdx.x; ++t) before += sums[t];
  for (std::size_t i = first; i < count && i < first + own; ++i) {
    const unsigned one = counts[i];
    counts[i] = before;
    before += one;
  }
}
// Moves the k largest elements out of x in order of their indices; of equal ones, the first.
inline __global__ void take_largest(std::size_t n, std::size_t chunk, float* x, const Search* search,
                                    const unsigned* above, const unsigned* at, float* values,
                                    unsigned* indices) {
  const std::size_t own = first_element();
  unsigned larger = above[own], equal = at[own];
  for (std::size_t i = own * chunk; i < n && i < (own + 1) * chunk; ++i) {
    const unsigned m = magnitude(x[i]);
    if (m < search->prefix) continue;
    const unsigned place = larger + (equal < search->remaining ? equal : search->remaining);
    const bool taken = m > search->prefix || equal < search->remaining;
    (m > search->prefix ? larger : equal) += 1;
    if (!taken) continue;
    values[place] = x[i];
    indices[place] = static_cast<unsigned>(i);
    x[i] = 0;
  }
}
inline __global__ void add_at(std::size_t k, const float* values, const unsigned* indices, float* to) {
  for (std::size_t i = first_element(); i < k; i += stride()) to[indices[i]] += values[i];
}

// Orthonormalizes the columns of p [rows, rank] by the Gram-Schmidt process, in one block. Columns of zeros
// stay zero.
inline __global__ void orthonormalize(std::size_t rows, std::size_t rank, float* p) {
  for (std::size_t k = 0; k < rank; ++k) {
    double squares = 0;
    for (std::size_t r = threadIdx.x; r < rows; r += kThreads)
      squares += static_cast<double>(p[r * rank + k]) * static_cast<double>(p[r * rank + k]);
    const double norm = sqrt(block_sum(squares));
    for (std::size_t r = threadIdx.x; r < rows && norm > 0; r += kThreads)
      p[r * rank + k] = static_cast<float>(static_cast<double>(p[r * rank + k]) / norm);
    for (std::size_t j = k + 1; j < rank; ++j) {
      double along = 0;
      for (std::size_t r = threadIdx.x; r < rows; r += kThreads)
        along += static_cast<double>(p[r * rank + k]) * static_cast<double>(p[r * rank + j]);
      along = block_sum(along);
      for (std::size_t r = threadIdx.x; r < rows; r += kThreads)
        p[r * rank + j] -= static_cast<float>(along * static_cast<double>(p[r * rank + k]));
    }
  }
}

}  // namespace rehearse::kernels::device
