#include "backend/host/host_arithmetic.hpp"
#include "backend/host/aligned_floats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "backend/host/machine.hpp"
#include "backend/host/stopwatch.hpp"
#include "backend/host/wide_code.hpp"
#include "backend/training/element_wise.hpp"
#include "backend/training/operands.hpp"
#include "models/kernels.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

constexpr std::size_t kAlignment = 64;

float* floats(const Array& array) {
  if (array.precision != Precision::fp32)
    throw RunError(fmt::format("processors train in fp32; found an array in {}", name_of(array.precision)));
  return reinterpret_cast<float*>(array.data);
}

long count_of(const Array& array) {
  return static_cast<long>(array.elements);
}

}  // namespace

HostArithmetic::HostArithmetic(int streams) : scratch_(static_cast<std::size_t>(streams)) {}

HostArithmetic::~HostArithmetic() {
  for (const Array& array : scratch_) release(array);
}

std::string HostArithmetic::device_name() const {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (const auto colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  return "processor";
}

DeviceTraits HostArithmetic::traits() const {
  const Machine machine = this_machine();
  DeviceTraits traits;
  traits.memory_bytes = machine.memory_bytes / machine.processors;
  traits.sample_s = 200e-6;  // long compared with reading the clock
  traits.sample_operations = 100'000;
  return traits;
}

Array HostArithmetic::allocate(std::size_t elements, Precision precision) {
  if (precision != Precision::fp32)
    throw RunError(
        fmt::format("processors train in fp32 (training.precision, gradient_precision and "
                    "activation_precision); found {}",
                    name_of(precision)));
  Array array{nullptr, elements, precision};
  if (elements == 0) return array;
  const bool counts = elements < std::numeric_limits<std::size_t>::max() / 8;
  const std::size_t bytes = counts ? (array.bytes() + kAlignment - 1) / kAlignment * kAlignment : 0;
  array.data = counts ? static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes)) : nullptr;
  if (!array.data)
    throw RunError(
        fmt::format("out of memory: {:.3g} GB were requested", 4e-9 * static_cast<double>(elements)));
  std::memset(array.data, 0, bytes);
  return array;
}

void HostArithmetic::release(const Array& array) {
  std::free(array.data);
}

Timed HostArithmetic::time(int, const std::function<void()>& issue) {
  return time_on_processor(issue);
}

void HostArithmetic::nothing(int stream) {
  replay(stream, moves(64), Precision::fp32);
}

void HostArithmetic::copy_to_device(int, const float* from, const Array& to) {
  std::copy_n(from, to.elements, floats(to));
}

void HostArithmetic::copy_to_host(int, const Array& from, float* to) {
  std::copy_n(floats(from), from.elements, to);
}

void HostArithmetic::copy(int, const Array& from, const Array& to) {
  expect_elements("the copy", to, from.elements);
  std::copy_n(floats(from), from.elements, floats(to));
}

void HostArithmetic::gemm(int, const MatrixShape& shape, bool transpose_a, bool transpose_b, float alpha,
                          const Array& a, const Array& b, float beta, const Array& c) {
  expect_product(shape, a, b, c);
  const auto [m, n, k] = shape;
  HostProduct product{m, n, k, transpose_a, transpose_b, alpha, beta};
  product.a = floats(a);
  product.b = floats(b);
  product.c = floats(c);
  wide_code().multiply(product);
}

void HostArithmetic::add_bias(int, const Array& y, const Array& bias, bool activate) {
  const long rows = rows_of("the bias's result", y, bias), columns = static_cast<long>(bias.elements);
  const float* add = floats(bias);
  float* row = floats(y);
  for (long r = 0; r < rows; ++r, row += columns) wide_code().add_bias(add, columns, activate, row);
}

void HostArithmetic::activation_backward(int, const Array& output, const Array& gradient) {
  expect_elements("the gradient", gradient, output.elements);
  wide_code().activation_backward(floats(output), count_of(output), floats(gradient));
}

void HostArithmetic::column_sums(int, const Array& gradient, const Array& sums, bool accumulate) {
  const long rows = rows_of("the summed gradient", gradient, sums),
             columns = static_cast<long>(sums.elements);
  const float* row = floats(gradient);
  float* sum = floats(sums);
  if (!accumulate) std::fill_n(sum, columns, 0.0f);
  for (long r = 0; r < rows; ++r, row += columns) wide_code().add(row, columns, sum);
}

void HostArithmetic::softmax_cross_entropy(int, const Array& logits, const Array& labels, float scale,
                                           const Array& losses, const Array& gradient) {
  const long rows = static_cast<long>(labels.elements);
  const long classes = rows_of("the logits", logits, labels);
  expect_elements("the losses", losses, labels.elements);
  expect_elements("the logits' gradient", gradient, logits.elements);
  const WideCode& code = wide_code();
  const float *x = floats(logits), *label = floats(labels);
  float *loss = floats(losses), *dx = floats(gradient);
  for (long r = 0; r < rows; ++r, x += classes, dx += classes) {
    const long right = std::lround(label[r]);
    if (right < 0 || right >= classes)
      throw std::invalid_argument(fmt::format("label {}; allowed: 0 to {}", right, classes - 1));
    const float most = code.maximum(x, classes);
    const float right_logit = x[right];
    const float sum = code.exponentials(x, most, classes, dx);
    loss[r] = std::log(sum) + most - right_logit;
    code.scale(scale / sum, classes, dx);
    dx[right] -= scale;
  }
}

void HostArithmetic::row_maxima(int, const Array& logits, const Array& maxima) {
  const long classes = rows_of("the maxima", logits, maxima);
  const float* x = floats(logits);
  for (std::size_t r = 0; r < maxima.elements; ++r, x += classes)
    floats(maxima)[r] = wide_code().maximum(x, classes);
}

void HostArithmetic::exponential_sums(int, const Array& logits, const RowLabels& labels, const Array& maxima,
                                      const Array& sums, const Array& label_logits) {
  expect_rows(labels.labels.elements, {maxima, sums, label_logits});
  const long classes = rows_of("the logits", logits, labels.labels);
  const float* x = floats(logits);
  AlignedFloats powers(static_cast<std::size_t>(classes));
  for (std::size_t r = 0; r < sums.elements; ++r, x += classes) {
    floats(sums)[r] = wide_code().exponentials(x, floats(maxima)[r], classes, powers.data());
    const long right = std::lround(floats(labels.labels)[r]) - static_cast<long>(labels.first_class);
    floats(label_logits)[r] = right >= 0 && right < classes ? x[right] : 0.0f;
  }
}

void HostArithmetic::split_cross_entropy(int, const Array& logits, const RowLabels& labels,
                                         const RowSums& rows, float scale, const Array& losses,
                                         const Array& gradient) {
  expect_rows(labels.labels.elements, {rows.maxima, rows.sums, rows.label_logits, losses});
  expect_elements("the logits' gradient", gradient, logits.elements);
  const long classes = rows_of("the logits", logits, labels.labels);
  const float* x = floats(logits);
  float* dx = floats(gradient);
  for (std::size_t r = 0; r < losses.elements; ++r, x += classes, dx += classes) {
    const float most = floats(rows.maxima)[r], sum = floats(rows.sums)[r];
    floats(losses)[r] = std::log(sum) + most - floats(rows.label_logits)[r];
    const long right = std::lround(floats(labels.labels)[r]) - static_cast<long>(labels.first_class);
    wide_code().exponentials(x, most, classes, dx);
    wide_code().scale(scale / sum, classes, dx);
    if (right >= 0 && right < classes) dx[right] -= scale;
  }
}

void HostArithmetic::largest(int, const Array& x, const Array& y) {
  expect_elements("the largest", y, x.elements);
  const float* from = floats(x);
  float* to = floats(y);
  for (std::size_t i = 0; i < x.elements; ++i) to[i] = std::max(to[i], from[i]);
}

void HostArithmetic::add(int, const Array& x, const Array& y) {
  expect_elements("the sum", y, x.elements);
  wide_code().add(floats(x), count_of(x), floats(y));
}

void HostArithmetic::scale(int, float factor, const Array& x) {
  wide_code().scale(factor, count_of(x), floats(x));
}

void HostArithmetic::update(int, const OptimizerSettings& optimizer, long step,
                            const OptimizerArrays& arrays) {
  expect_optimizer_arrays(optimizer, arrays);
  const auto [weights, master, gradient, momentum, second_moment] = arrays;
  wide_code().update(optimizer.kind, step_constants(optimizer, step), floats(gradient), count_of(weights),
                     floats(weights), has_momentum(optimizer.kind) ? floats(momentum) : nullptr,
                     has_second_moment(optimizer.kind) ? floats(second_moment) : nullptr);
}

}  // namespace rehearse
