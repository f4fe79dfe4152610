// Declares the training kernels other than matrix products. Operands are as in training/arithmetic.hpp and
// already checked.
#pragma once

#include "backend/training/arithmetic.hpp"

struct CUstream_st;

namespace rehearse::kernels {

using Stream = CUstream_st*;

void convert(Stream stream, const Array& from, const Array& to);
void add_bias(Stream stream, const Array& y, const Array& bias, bool activate);
void activation_backward(Stream stream, const Array& output, const Array& gradient);
void column_sums(Stream stream, const Array& gradient, const Array& sums, bool accumulate);
void softmax_cross_entropy(Stream stream, const Array& logits, const Array& labels, float scale,
                           const Array& losses, const Array& gradient);
void row_maxima(Stream stream, const Array& logits, const Array& maxima);
void exponential_sums(Stream stream, const Array& logits, const RowLabels& labels, const Array& maxima,
                      const Array& sums, const Array& label_logits);
void split_cross_entropy(Stream stream, const Array& logits, const RowLabels& labels, const RowSums& rows,
                         float scale, const Array& losses, const Array& gradient);
void add(Stream stream, const Array& x, const Array& y);
void largest(Stream stream, const Array& x, const Array& y);
void scale(Stream stream, float factor, const Array& x);
void update(Stream stream, const OptimizerSettings& optimizer, long step, const OptimizerArrays& arrays);
// Fills an array with numbers spread over [-1, 1), so that products draw as much power as with real data.
void fill(Stream stream, const Array& array);
void nothing(Stream stream);  // only a launch

}  // namespace rehearse::kernels
