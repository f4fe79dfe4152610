// Declares the kernels of gradient compression, on arrays of fp32 unless stated otherwise.
#pragma once

#include "backend/cuda/training_kernels.hpp"

namespace rehearse::kernels {

// Convert between fp32 and IEEE 754 binary16; an element of `halves` holds two halves.
void to_halves(Stream stream, const Array& from, const Array& halves);
void from_halves(Stream stream, const Array& halves, const Array& to);

void clear(Stream stream, const Array& x);
void add_scaled(Stream stream, float factor, const Array& x, const Array& y);  // y += factor x

// Writes the root of the mean square to root[0]; `scratch` has kRootScratch elements.
inline constexpr std::size_t kRootScratch = 512;
void root_mean_square(Stream stream, const Array& x, const Array& scratch, const Array& root);

// Packs the signs of shares of `share` numbers, a multiple of 8. Block i holds the scale and the signs of
// share i and begins at element i * block of `blocks`. The error of that representation stays in `numbers`.
void put_signs(Stream stream, const Array& numbers, std::size_t share, std::size_t shares, const Array& scale,
               const Array& blocks, std::size_t block);
// Adds to `to` the sum of the numbers that `count` blocks represent; the blocks begin `apart` elements apart.
void add_signs(Stream stream, const Array& blocks, std::size_t count, std::size_t apart, const Array& to);
// Writes the numbers that the shares' blocks represent to `to`.
void take_signs(Stream stream, const Array& blocks, std::size_t share, std::size_t block, const Array& to);

// Moves the k elements of largest magnitude out of x in order of their indices; of equal ones, the first.
// `taken` has 2 k elements and gets the values, then the indices as 32-bit integers. `scratch` has
// kLargestScratch elements.
inline constexpr std::size_t kMostChunks = 65536, kLargestScratch = 2 * kMostChunks + 512;
void take_largest(Stream stream, const Array& x, std::size_t k, const Array& scratch, const Array& taken);
// Computes to[index] += value for what take_largest() returned.
void add_at(Stream stream, const Array& taken, const Array& to);

// Orthonormalizes the columns of p, a matrix of `columns` columns.
void orthonormalize(Stream stream, const Array& p, std::size_t columns);

}  // namespace rehearse::kernels
