// The kernels of gradient compression, on arrays of fp32 unless told otherwise.
#pragma once

#include "backend/cuda/training_kernels.hpp"

namespace rehearse::kernels {

// fp32 and IEEE 754 binary16, as halves of the elements of `halves`.
void to_halves(Stream stream, const Array& from, const Array& halves);
void from_halves(Stream stream, const Array& halves, const Array& to);

void clear(Stream stream, const Array& x);
void add_scaled(Stream stream, float factor, const Array& x, const Array& y);  // y += factor x

// The root of the mean square, in root[0]; `scratch`: kRootScratch elements.
inline constexpr std::size_t kRootScratch = 512;
void root_mean_square(Stream stream, const Array& x, const Array& scratch, const Array& root);

// Signs of shares of `share` numbers, a multiple of 8; block i, of the scale and the signs of share i, begins
// at element i * block of `blocks`. What signs and scale do not say stays in `numbers`.
void put_signs(Stream stream, const Array& numbers, std::size_t share, std::size_t shares, const Array& scale,
               const Array& blocks, std::size_t block);
// to += the sum of what `count` blocks say, `apart` elements from one to the next.
void add_signs(Stream stream, const Array& blocks, std::size_t count, std::size_t apart, const Array& to);
// to = what the shares' blocks say.
void take_signs(Stream stream, const Array& blocks, std::size_t share, std::size_t block, const Array& to);

// Moves the k elements of largest magnitude out of x, in order of their places, of equal ones the first:
// values, and then places as 32-bit integers, into `taken`, of 2 k elements. `scratch`: kLargestScratch.
inline constexpr std::size_t kMostChunks = 65536, kLargestScratch = 2 * kMostChunks + 512;
void take_largest(Stream stream, const Array& x, std::size_t k, const Array& scratch, const Array& taken);
// to[place] += value, of what take_largest() gave.
void add_at(Stream stream, const Array& taken, const Array& to);

// The columns of p, a matrix of `columns` columns.
void orthonormalize(Stream stream, const Array& p, std::size_t columns);

}  // namespace rehearse::kernels
