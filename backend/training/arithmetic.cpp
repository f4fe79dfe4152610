#include "backend/training/arithmetic.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "backend/training/device_compressor.hpp"
#include "backend/training/operands.hpp"
#include "backend/training/transformer_arithmetic.hpp"

namespace rehearse {

std::unique_ptr<TransformerArithmetic> Arithmetic::transformer() {
  return nullptr;
}

std::unique_ptr<DeviceCompressor> Arithmetic::compressor(const CompressionTask&) {
  return nullptr;
}

Array Array::part(std::size_t first, std::size_t count) const {
  if (first > elements || count > elements - first)
    throw std::out_of_range(
        fmt::format("elements {} to {} of an array of {}", first, first + count, elements));
  return {data + first * element_size(), count, precision};
}

Array share(const Array& whole, int i, int n) {
  const std::size_t begin = share_begin(whole.elements, i, n);
  return whole.part(begin, share_begin(whole.elements, i + 1, n) - begin);
}

void expect_rows(std::size_t rows, std::initializer_list<Array> arrays) {
  for (const Array& array : arrays) expect_elements("an array with one element per row", array, rows);
}

void expect_elements(std::string_view operand, const Array& array, std::size_t elements) {
  if (array.elements != elements)
    throw std::invalid_argument(
        fmt::format("{} has {} elements; allowed: {}", operand, array.elements, elements));
}

long rows_of(std::string_view operand, const Array& matrix, const Array& row) {
  if (row.elements == 0 || matrix.elements % row.elements != 0)
    throw std::invalid_argument(fmt::format("{} has {} elements; allowed: multiples of its row's {}", operand,
                                            matrix.elements, row.elements));
  return static_cast<long>(matrix.elements / row.elements);
}

void expect_product(const MatrixShape& shape, const Array& a, const Array& b, const Array& c) {
  const auto size = [](long rows, long columns) { return static_cast<std::size_t>(rows * columns); };
  expect_elements("the left factor", a, size(shape.m, shape.k));
  expect_elements("the right factor", b, size(shape.k, shape.n));
  expect_elements("the product", c, size(shape.m, shape.n));
}

void expect_optimizer_arrays(const OptimizerSettings& optimizer, const OptimizerArrays& arrays) {
  const std::size_t elements = arrays.weights.elements;
  expect_elements("the master weights", arrays.master, elements);
  expect_elements("the gradient", arrays.gradient, elements);
  if (has_momentum(optimizer.kind)) expect_elements("the momentum", arrays.momentum, elements);
  if (has_second_moment(optimizer.kind)) expect_elements("the second moment", arrays.second_moment, elements);
}

OptimizerSettings default_settings(Optimizer kind) {
  OptimizerSettings settings;
  settings.kind = kind;
  settings.learning_rate = kind == Optimizer::adam ? 1e-3f : kind == Optimizer::momentum ? 1e-2f : 1e-1f;
  return settings;
}

}  // namespace rehearse
