// The kernels of models that are bound by memory; operands are taken to fit. Arrays are fp32, tf32, bf16 or
// fp16, all of a call alike; statistics, sums, parts and what belongs to channels are fp32.
#pragma once

#include "backend/cuda/training_kernels.hpp"

namespace rehearse::kernels {

// Elements of all arrays are multiples of this.
std::size_t pack_elements(Precision precision);

// `from` and `to` are arrays of `elements` each, one behind the other, of which the last may be a part:
// factor times the sum of those in `from` is written to each in `to`.
void element_wise(Stream stream, const Array& from, const Array& to, std::size_t elements, float factor);

// A layer norm of rows as long as `gain`. `statistics`, two of each row: mean, 1 / standard deviation.
void norm_forward(Stream stream, const Array& x, const Array& gain, const Array& bias, const Array& y,
                  const Array& statistics);
void norm_backward(Stream stream, const Array& x, const Array& dy, const Array& gain, const Array& statistics,
                   const Array& dx);

// Of `scale` times the rows of `width` elements. `capped`: empty, or what soft-capping's tanh gave.
void softmax_forward(Stream stream, std::size_t width, float scale, const Array& x, const Array& y);
void softmax_backward(Stream stream, std::size_t width, float scale, const Array& y, const Array& dy,
                      const Array& capped, const Array& dx);

// Sums dy [rows, width] over its rows, and dy times the normalised x too, unless x is empty.
// `parts`: column_parts(...) times as large as `sums`.
std::size_t column_parts(std::size_t rows, std::size_t width, Precision precision);
void sum_columns(Stream stream, const Array& x, const Array& statistics, const Array& dy, const Array& parts,
                 const Array& sums);

// [samples, channels, plane].
struct Planes {
  std::size_t samples = 0, channels = 0, plane = 0;
  std::size_t elements() const { return samples * channels * plane; }
};
// Of each channel the sum of dy and, unless x is empty, of dy times x. `parts`: channel_parts(...) times as
// large as `sums`.
std::size_t channel_parts(const Planes& planes, Precision precision);
void sum_channels(Stream stream, const Planes& planes, const Array& x, const Array& dy, const Array& parts,
                  const Array& sums);
// `sums`: of x and of its squares; of dy and of dy times x.
void batch_norm_forward(Stream stream, const Planes& planes, const Array& sums, const Array& x,
                        const Array& gain, const Array& bias, const Array& y, const Array& statistics);
void batch_norm_backward(Stream stream, const Planes& planes, const Array& sums, const Array& statistics,
                         const Array& gain, const Array& x, const Array& dy, const Array& dx);

}  // namespace rehearse::kernels
