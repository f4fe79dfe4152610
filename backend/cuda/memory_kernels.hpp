// Declares the memory-bound kernels of models; operands must fit together. All arrays of a call are fp32,
// tf32, bf16 or fp16; statistics, sums, partial sums and arrays with an element per channel are fp32.
#pragma once

#include "backend/cuda/training_kernels.hpp"

namespace rehearse::kernels {

// The number of elements of every array must be a multiple of this.
std::size_t pack_elements(Precision precision);

// `from` and `to` hold arrays of `elements` elements, one after the other; the last may be incomplete. Writes
// `factor` times the sum of the arrays in `from` to each array in `to`.
void element_wise(Stream stream, const Array& from, const Array& to, std::size_t elements, float factor);

// Layer norm of rows as long as `gain`. `statistics` has two numbers per row: mean and 1 / standard
// deviation.
void norm_forward(Stream stream, const Array& x, const Array& gain, const Array& bias, const Array& y,
                  const Array& statistics);
void norm_backward(Stream stream, const Array& x, const Array& dy, const Array& gain, const Array& statistics,
                   const Array& dx);

// Softmax of `scale` times the rows of `width` elements. `capped` is empty, or the output of soft-capping's
// tanh.
void softmax_forward(Stream stream, std::size_t width, float scale, const Array& x, const Array& y);
void softmax_backward(Stream stream, std::size_t width, float scale, const Array& y, const Array& dy,
                      const Array& capped, const Array& dx);

// Sums dy [rows, width] over its rows and, unless x is empty, also dy times the normalized x. `parts` must be
// column_parts(...) times as large as `sums`.
std::size_t column_parts(std::size_t rows, std::size_t width, Precision precision);
void sum_columns(Stream stream, const Array& x, const Array& statistics, const Array& dy, const Array& parts,
                 const Array& sums);

// An array [samples, channels, plane].
struct Planes {
  std::size_t samples = 0, channels = 0, plane = 0;
  std::size_t elements() const { return samples * channels * plane; }
};
// Sums dy and, unless x is empty, dy times x for each channel. `parts` must be channel_parts(...) times as
// large as `sums`.
std::size_t channel_parts(const Planes& planes, Precision precision);
void sum_channels(Stream stream, const Planes& planes, const Array& x, const Array& dy, const Array& parts,
                  const Array& sums);
// `sums` are those of x and of its squares (forward), or of dy and of dy times x (backward).
void batch_norm_forward(Stream stream, const Planes& planes, const Array& sums, const Array& x,
                        const Array& gain, const Array& bias, const Array& y, const Array& statistics);
void batch_norm_backward(Stream stream, const Planes& planes, const Array& sums, const Array& statistics,
                         const Array& gain, const Array& x, const Array& dy, const Array& dx);

}  // namespace rehearse::kernels
