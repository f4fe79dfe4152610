// Defines the element functions of transformer operations on tokens: look-ups, norms, positions (see
// transformer_elements.hpp). operator()(i) computes item i.
#pragma once

#include "backend/training/token_order.hpp"

namespace rehearse::elements {

struct CopyPieces {  // by element
  long width, from_stride, to_stride;
  const float* from;
  float* to;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long row = i / width, column = i % width;
    to[row * to_stride + column] = from[row * from_stride + column];
  }
};

struct LookUp {  // by element of the result
  long width, first_row, rows;
  const float *tokens, *table;
  float* y;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long row = static_cast<long>(tokens[i / width]) - first_row;
    y[i] = row >= 0 && row < rows ? table[row * width + i % width] : 0.0f;
  }
};

struct LookUpBackward {  // by column
  long width, first_row, rows, tokens_here;
  bool accumulate;
  const float *tokens, *dy;
  float* gradient;
  REHEARSE_ELEMENT void operator()(long column) const {
    for (long row = 0; !accumulate && row < rows; ++row) gradient[row * width + column] = 0;
    for (long t = 0; t < tokens_here; ++t) {
      const long row = static_cast<long>(tokens[t]) - first_row;
      if (row >= 0 && row < rows) gradient[row * width + column] += dy[t * width + column];
    }
  }
};

struct AddPositions {  // by element
  long width, sequence, first, offset;
  TokenOrder order;
  const float *x, *table;
  float* y;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long position = offset + order.position(first + i / width % sequence);
    y[i] = x[i] + table[position * width + i % width];
  }
};

struct PositionsBackward {  // by element of the table
  long width, batch, sequence, first, offset;
  TokenOrder order;
  bool accumulate;
  const float* dy;
  float* gradient;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long position = i / width - offset;
    const long token = position < 0 ? -1 : order.number(position) - first;
    float sum = accumulate ? gradient[i] : 0.0f;
    for (long b = 0; b < batch && token >= 0 && token < sequence; ++b)
      sum += dy[(b * sequence + token) * width + i % width];
    gradient[i] = sum;
  }
};

constexpr float kNormEpsilon = 1e-5f;

struct Norm {  // by row
  long width, stride;
  bool centred;
  const float *x, *gain, *offset;
  float *y, *statistics;
  REHEARSE_ELEMENT void operator()(long row) const {
    const float* from = x + row * stride;
    float mean = 0, squares = 0;
    for (long j = 0; centred && j < width; ++j) mean += from[j];
    mean /= static_cast<float>(width);
    for (long j = 0; j < width; ++j) squares += (from[j] - mean) * (from[j] - mean);
    const float scale = 1 / sqrtf(squares / static_cast<float>(width) + kNormEpsilon);
    statistics[2 * row] = mean;
    statistics[2 * row + 1] = scale;
    for (long j = 0; j < width; ++j)
      y[row * stride + j] = (from[j] - mean) * scale * gain[j] + (centred ? offset[j] : 0.0f);
  }
};

struct NormBackward {  // by row
  long width, stride;
  bool centred;
  const float *x, *gain, *statistics, *dy;
  float* dx;
  REHEARSE_ELEMENT void operator()(long row) const {
    const float *from = x + row * stride, *above = dy + row * stride;
    const float mean = statistics[2 * row], scale = statistics[2 * row + 1];
    float sum = 0, product = 0;
    for (long j = 0; j < width; ++j) {
      const float slope = above[j] * gain[j];
      sum += slope;
      product += slope * (from[j] - mean) * scale;
    }
    sum = centred ? sum / static_cast<float>(width) : 0.0f;
    product /= static_cast<float>(width);
    for (long j = 0; j < width; ++j)
      dx[row * stride + j] = scale * (above[j] * gain[j] - sum - (from[j] - mean) * scale * product);
  }
};

struct NormGradients {  // by column
  long rows, stride;
  bool centred, accumulate;
  const float *x, *statistics, *dy;
  float *gain_gradient, *offset_gradient;
  REHEARSE_ELEMENT void operator()(long column) const {
    float gain = accumulate ? gain_gradient[column] : 0.0f;
    float offset = accumulate && centred ? offset_gradient[column] : 0.0f;
    for (long row = 0; row < rows; ++row) {
      const float above = dy[row * stride + column];
      gain += above * (x[row * stride + column] - statistics[2 * row]) * statistics[2 * row + 1];
      offset += above;
    }
    gain_gradient[column] = gain;
    if (centred) offset_gradient[column] = offset;
  }
};

struct Rotate {  // by pair
  long heads, stride, width, sequence, first;
  TokenOrder order;
  float sign;
  float* x;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long half = width / 2, pair = i % half, head = i / half;
    const float position = static_cast<float>(order.position(first + head / heads % sequence));
    const float angle =
        position * powf(10000.0f, -2.0f * static_cast<float>(pair) / static_cast<float>(width));
    const float cosine = cosf(angle), sine = sign * sinf(angle);
    float *one = x + head * stride + pair, *other = one + half;
    const float before = *one;
    *one = before * cosine - *other * sine;
    *other = *other * cosine + before * sine;
  }
};

}  // namespace rehearse::elements
