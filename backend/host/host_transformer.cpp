#include "backend/host/host_transformer.hpp"
#include "backend/host/aligned_floats.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/host/host_arithmetic.hpp"
#include "backend/host/wide_code.hpp"

namespace rehearse {
namespace {

using elements::at;

NormRow norm_row(const NormRows& rows, const NormArrays& arrays, long row) {
  return {rows.width, at(arrays.input) + row * rows.stride, at(arrays.gain),
          rows.centred ? at(arrays.offset) : nullptr, at(arrays.statistics) + 2 * row};
}

}  // namespace

std::unique_ptr<TransformerArithmetic> HostArithmetic::transformer() {
  return std::make_unique<HostTransformer>();
}

void HostTransformer::copy_pieces(int, long rows, long width, const Strips& from, const Strips& to) {
  for (long row = 0; row < rows; ++row)
    std::copy_n(at(from.array) + from.first + row * from.stride, width,
                at(to.array) + to.first + row * to.stride);
}

void HostTransformer::look_up(int, const Array& tokens, long first_row, long width, const Array& table,
                              const Array& y) {
  const long rows = count(table) / width;
  for (long t = 0; t < count(tokens); ++t) {
    const long row = static_cast<long>(at(tokens)[t]) - first_row;
    if (row >= 0 && row < rows)
      std::copy_n(at(table) + row * width, width, at(y) + t * width);
    else
      std::fill_n(at(y) + t * width, width, 0.0f);
  }
}

void HostTransformer::look_up_backward(int, const Array& tokens, long first_row, long width, const Array& dy,
                                       const Array& table_gradient, bool accumulate) {
  const long rows = count(table_gradient) / width;
  if (!accumulate) std::fill_n(at(table_gradient), count(table_gradient), 0.0f);
  for (long t = 0; t < count(tokens); ++t) {
    const long row = static_cast<long>(at(tokens)[t]) - first_row;
    if (row >= 0 && row < rows) wide_code().add(at(dy) + t * width, width, at(table_gradient) + row * width);
  }
}

void HostTransformer::add_positions(int, const TokenRows& tokens, long offset, const Array& x,
                                    const Array& table, const Array& y) {
  const long width = count(y) / tokens.count();
  std::copy_n(at(x), count(y), at(y));
  for (long t = 0; t < tokens.count(); ++t) {
    const long position = offset + tokens.order.position(tokens.first + t % tokens.sequence);
    wide_code().add(at(table) + position * width, width, at(y) + t * width);
  }
}

void HostTransformer::positions_backward(int, const TokenRows& tokens, long offset, long width,
                                         const Array& dy, const Array& table_gradient, bool accumulate) {
  if (!accumulate) std::fill_n(at(table_gradient), count(table_gradient), 0.0f);
  for (long t = 0; t < tokens.count(); ++t) {
    const long position = offset + tokens.order.position(tokens.first + t % tokens.sequence);
    wide_code().add(at(dy) + t * width, width, at(table_gradient) + position * width);
  }
}

void HostTransformer::norm(int, const NormRows& rows, const NormArrays& arrays, const Array& y) {
  for (long row = 0; row < rows.rows; ++row)
    wide_code().norm(norm_row(rows, arrays, row), elements::kNormEpsilon, at(y) + row * rows.stride);
}

void HostTransformer::norm_backward(int, const NormRows& rows, const NormArrays& arrays, const Array& dy,
                                    const Array& dx) {
  for (long row = 0; row < rows.rows; ++row)
    wide_code().norm_backward(norm_row(rows, arrays, row), at(dy) + row * rows.stride,
                              at(dx) + row * rows.stride);
}

void HostTransformer::norm_gradients(int, const NormRows& rows, const NormArrays& arrays, const Array& dy,
                                     const Array& gain_gradient, const Array& offset_gradient,
                                     bool accumulate) {
  float* offset = rows.centred ? at(offset_gradient) : nullptr;
  if (!accumulate) std::fill_n(at(gain_gradient), rows.width, 0.0f);
  if (!accumulate && offset) std::fill_n(offset, rows.width, 0.0f);
  for (long row = 0; row < rows.rows; ++row)
    wide_code().norm_gradients(norm_row(rows, arrays, row), at(dy) + row * rows.stride, at(gain_gradient),
                               offset);
}

void HostTransformer::rotate(int, const RotaryShape& s, bool back, const Array& x) {
  const long half = s.width / 2;
  AlignedFloats frequencies(static_cast<std::size_t>(half)), cosines(frequencies), sines(frequencies);
  for (long i = 0; i < half; ++i)
    frequencies[static_cast<std::size_t>(i)] =
        std::pow(10000.0f, -2.0f * static_cast<float>(i) / static_cast<float>(s.width));
  for (long t = 0; t < s.tokens.count(); ++t) {
    const long position = s.tokens.order.position(s.tokens.first + t % s.tokens.sequence);
    wide_code().angles(static_cast<float>(position), frequencies.data(), back ? -1.0f : 1.0f, half,
                       cosines.data(), sines.data());
    for (long head = 0; head < s.heads; ++head) {
      float* one = at(x) + (t * s.heads + head) * s.stride;
      wide_code().rotate(cosines.data(), sines.data(), half, one, one + half);
    }
  }
}

void HostTransformer::activate(int stream, Activation kind, const Array& x, const Array& y) {
  if (kind == Activation::gelu)
    wide_code().gelu(at(x), count(x), at(y));
  else
    TransformerByElement::activate(stream, kind, x, y);
}

void HostTransformer::activate_backward(int stream, Activation kind, const Array& x, const Array& dy,
                                        const Array& dx) {
  if (kind == Activation::gelu)
    wide_code().gelu_backward(at(x), at(dy), count(x), at(dx));
  else
    TransformerByElement::activate_backward(stream, kind, x, dy, dx);
}

void HostTransformer::gate(int, const Array& gate, const Array& x, const Array& y) {
  wide_code().gate(at(gate), at(x), count(x), at(y));
}

void HostTransformer::gate_backward(int, const Array& gate, const Array& x, const Array& dy,
                                    const Array& gate_gradient, const Array& dx) {
  wide_code().gate_backward(at(gate), at(x), at(dy), count(x), at(gate_gradient), at(dx));
}

void HostTransformer::logits_backward(int, const Array& logits, const RowLabels& labels, const Array& maxima,
                                      const Array& dsums, const Array& dlabel_logits, const Array& dlogits) {
  const long classes = count(logits) / count(maxima);
  for (long row = 0; row < count(maxima); ++row) {
    float* result = at(dlogits) + row * classes;
    wide_code().exponentials(at(logits) + row * classes, at(maxima)[row], classes, result);
    wide_code().scale(at(dsums)[row], classes, result);
    const long label = static_cast<long>(at(labels.labels)[row]) - static_cast<long>(labels.first_class);
    if (label >= 0 && label < classes) result[label] += at(dlabel_logits)[row];
  }
}

void HostTransformer::spread_rows(int, const ExpertRows& s, bool weighted, const Array& gates, const Array& x,
                                  const Array& y) {
  for (long expert = 0; expert < s.experts; ++expert)
    for (long token = 0; token < s.tokens; ++token) {
      const float gate = at(gates)[token * s.experts + expert];
      float* row = at(y) + (expert * s.tokens + token) * s.width;
      std::fill_n(row, s.width, 0.0f);
      if (gate != 0) wide_code().add_multiple(weighted ? gate : 1.0f, at(x) + token * s.width, s.width, row);
    }
}

void HostTransformer::gather_rows(int, const ExpertRows& s, bool weighted, const Array& gates, const Array& x,
                                  const Array& y) {
  for (long token = 0; token < s.tokens; ++token) {
    float* row = at(y) + token * s.width;
    std::fill_n(row, s.width, 0.0f);
    for (long expert = 0; expert < s.experts; ++expert)
      if (const float gate = at(gates)[token * s.experts + expert]; gate != 0)
        wide_code().add_multiple(weighted ? gate : 1.0f, at(x) + (expert * s.tokens + token) * s.width,
                                 s.width, row);
  }
}

void HostTransformer::gate_slopes(int, const ExpertRows& s, const Array& gates, const Array& x,
                                  const Array& dy, const Array& dgates) {
  for (long token = 0; token < s.tokens; ++token)
    for (long expert = 0; expert < s.experts; ++expert) {
      const long gate = token * s.experts + expert;
      at(dgates)[gate] = at(gates)[gate] == 0
                             ? 0.0f
                             : wide_code().inner_product(at(x) + (expert * s.tokens + token) * s.width,
                                                         at(dy) + token * s.width, s.width);
    }
}

}  // namespace rehearse
