// Tests the memory-bound kernels of models against plain loops in double precision, if there is a GPU.
#ifdef REHEARSE_HAVE_CUDA

#include <cmath>
#include <functional>

#include "backend/cuda/cuda_arithmetic.hpp"
#include "backend/cuda/memory_kernels.hpp"
#include "backend/cuda/memory_replay.hpp"
#include "models/kernels.hpp"
#include "models/text/error.hpp"
#include "tests/gpu_numbers.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

constexpr double kEpsilon = 1e-5;

struct RowCase {
  std::size_t rows, width;
};
// Single rows and numbers, odd lengths, rows for a warp, rows for a block, rows made of full packs.
constexpr RowCase kRowCases[] = {{1, 1},    {3, 7},  {11, 64},  {9, 250},
                                 {2, 1000}, {5, 12}, {1, 1031}, {3, 2056}};

class Kernels {
public:
  Kernels(CudaArithmetic& device, Precision precision)
      : device_(device), precision_(precision), unit_(unit_of(precision)) {}

  void check_elements() {
    struct Case {
      int reads;
      double read, written;  // number of arrays
    };
    const std::size_t pack = kernels::pack_elements(precision_);
    for (const Case& c : {Case{1, 1, 1}, Case{2, 2, 1}, Case{3, 3, 2}, Case{2, 1.5, 1}, Case{1, 1, 1.25}})
      for (const std::size_t packs : {std::size_t{4}, std::size_t{1000}}) {
        CAPTURE(c.read, c.written, packs);
        const std::size_t elements = packs * pack;
        const auto part = [&](double arrays) {
          return static_cast<std::size_t>(arrays * static_cast<double>(packs)) * pack;
        };
        const GpuNumbers from(device_, some(1, part(c.read)), precision_);
        GpuNumbers to(device_, part(c.written), precision_);
        kernels::element_wise(stream(), from, to, elements, 0.5f);
        std::vector<double> expected(part(c.written), 0);
        for (std::size_t i = 0; i < expected.size(); ++i)
          for (std::size_t j = i % elements; j < part(c.read); j += elements)
            expected[i] += 0.5 * from.values()[j];
        check(to, expected);
      }
  }

  void check_norms() {
    for (const RowCase& c : kRowCases) {
      const std::size_t rows = c.rows, width = c.width;
      CAPTURE(rows, width);
      const std::size_t n = rows * width;
      const GpuNumbers x(device_, some(1, n), precision_), dy(device_, some(2, n), precision_),
          gain(device_, some(3, width), precision_), bias(device_, some(4, width), precision_);
      GpuNumbers y(device_, n, precision_), dx(device_, n, precision_),
          statistics(device_, 2 * rows, Precision::fp32), sums(device_, 2 * width, Precision::fp32);
      const std::size_t count = kernels::column_parts(rows, width, precision_);
      const GpuNumbers parts(device_, 2 * width * count, Precision::fp32);
      kernels::norm_forward(stream(), x, gain, bias, y, statistics);
      kernels::norm_backward(stream(), x, dy, gain, statistics, dx);
      kernels::sum_columns(stream(), x, statistics, dy, parts, sums);

      std::vector<double> all_y(n), all_dx(n), all_sums(2 * width, 0);
      for (std::size_t r = 0; r < rows; ++r) {
        const auto row = [&](const GpuNumbers& of, std::size_t j) { return of.values()[r * width + j]; };
        const auto mean_of = [&](const std::function<double(std::size_t)>& value) {
          double sum = 0;
          for (std::size_t j = 0; j < width; ++j) sum += value(j);
          return sum / static_cast<double>(width);
        };
        const double mean = mean_of([&](std::size_t j) { return row(x, j); });
        const double variance = mean_of([&](std::size_t j) { return std::pow(row(x, j) - mean, 2); });
        const double inverse = 1 / std::sqrt(variance + kEpsilon);
        const auto normal = [&](std::size_t j) { return (row(x, j) - mean) * inverse; };
        const auto slope = [&](std::size_t j) { return row(dy, j) * gain.values()[j]; };
        const double slopes = mean_of(slope),
                     along = mean_of([&](std::size_t j) { return slope(j) * normal(j); });
        for (std::size_t j = 0; j < width; ++j) {
          all_y[r * width + j] = normal(j) * gain.values()[j] + bias.values()[j];
          all_dx[r * width + j] = inverse * (slope(j) - slopes - normal(j) * along);
          all_sums[j] += row(dy, j);
          all_sums[width + j] += row(dy, j) * normal(j);
        }
      }
      // For a single element, the factor 1 / sqrt(epsilon) magnifies rounding errors.
      const double factor = width == 1 ? 1e3 : 1;
      check(y, all_y, factor);
      check(dx, all_dx, factor);
      check(sums, all_sums, factor);
    }
  }

  void check_softmax() {
    const float scale = 0.25f;
    for (const RowCase& c : kRowCases)
      for (const bool capped : {false, true}) {
        const std::size_t rows = c.rows, width = c.width;
        CAPTURE(rows, width, capped);
        const std::size_t n = rows * width;
        const GpuNumbers x(device_, some(1, n), precision_), dy(device_, some(2, n), precision_),
            tanh(device_, some(3, n), precision_);
        GpuNumbers y(device_, n, precision_), dx(device_, n, precision_);
        kernels::softmax_forward(stream(), width, scale, x, y);
        std::vector<double> all_y(n), all_dx(n);
        for (std::size_t r = 0; r < rows; ++r) {
          double sum = 0;
          for (std::size_t i = r * width; i < (r + 1) * width; ++i)
            sum += all_y[i] = std::exp(0.25 * x.values()[i]);
          for (std::size_t i = r * width; i < (r + 1) * width; ++i) all_y[i] /= sum;
        }
        check(y, all_y);
        y.read();
        kernels::softmax_backward(stream(), width, scale, y, dy, capped ? Array(tanh) : Array{}, dx);
        for (std::size_t r = 0; r < rows; ++r) {
          double along = 0;
          for (std::size_t i = r * width; i < (r + 1) * width; ++i) along += y.values()[i] * dy.values()[i];
          for (std::size_t i = r * width; i < (r + 1) * width; ++i)
            all_dx[i] = 0.25 * y.values()[i] * (dy.values()[i] - along) *
                        (capped ? 1 - tanh.values()[i] * tanh.values()[i] : 1);
        }
        check(dx, all_dx);
      }
  }

  void check_column_sums() {
    for (const RowCase& c : {RowCase{1, 3}, RowCase{200, 40}, RowCase{129, 5}, RowCase{7, 600}}) {
      const std::size_t rows = c.rows, width = c.width;
      CAPTURE(rows, width);
      const GpuNumbers dy(device_, some(1, rows * width), precision_);
      GpuNumbers sums(device_, width, Precision::fp32);
      const GpuNumbers parts(device_, width * kernels::column_parts(rows, width, precision_),
                             Precision::fp32);
      kernels::sum_columns(stream(), {}, {}, dy, parts, sums);
      std::vector<double> expected(width, 0);
      for (std::size_t i = 0; i < rows * width; ++i) expected[i % width] += dy.values()[i];
      check(sums, expected);
    }
  }

  void check_batch_norm() {
    using Planes = kernels::Planes;
    for (const Planes& planes : {Planes{1, 1, 9}, Planes{2, 3, 49}, Planes{5, 2, 16}, Planes{2, 3, 196},
                                 Planes{3, 2, 1000}, Planes{40, 3, 256}}) {
      CAPTURE(planes.samples, planes.channels, planes.plane);
      const std::size_t n = planes.elements(), channels = planes.channels;
      const GpuNumbers x(device_, some(1, n), precision_), dy(device_, some(2, n), precision_),
          gain(device_, some(3, channels), Precision::fp32),
          bias(device_, some(4, channels), Precision::fp32);
      GpuNumbers y(device_, n, precision_), dx(device_, n, precision_),
          statistics(device_, 2 * channels, Precision::fp32), sums(device_, 2 * channels, Precision::fp32),
          only_dy(device_, channels, Precision::fp32);
      const std::size_t count = kernels::channel_parts(planes, precision_);
      const GpuNumbers parts(device_, 2 * channels * count, Precision::fp32),
          fewer(device_, channels * count, Precision::fp32);
      kernels::sum_channels(stream(), planes, x, x, parts, sums);
      kernels::batch_norm_forward(stream(), planes, sums, x, gain, bias, y, statistics);
      kernels::sum_channels(stream(), planes, x, dy, parts, sums);
      kernels::batch_norm_backward(stream(), planes, sums, statistics, gain, x, dy, dx);
      kernels::sum_channels(stream(), planes, {}, dy, fewer, only_dy);

      std::vector<double> mean(channels, 0), variance(channels, 0), slopes(channels, 0), along(channels, 0),
          all_y(n), all_dx(n);
      const auto each = [&](const std::function<void(std::size_t, std::size_t)>& visit) {
        for (std::size_t i = 0; i < n; ++i) visit(i, i / planes.plane % channels);
      };
      const double of_channel = static_cast<double>(n / channels);
      each([&](std::size_t i, std::size_t c) { mean[c] += x.values()[i] / of_channel; });
      each([&](std::size_t i, std::size_t c) {
        variance[c] += std::pow(x.values()[i] - mean[c], 2) / of_channel;
      });
      const auto inverse = [&](std::size_t c) { return 1 / std::sqrt(variance[c] + kEpsilon); };
      const auto normal = [&](std::size_t i, std::size_t c) {
        return (x.values()[i] - mean[c]) * inverse(c);
      };
      each([&](std::size_t i, std::size_t c) {
        slopes[c] += dy.values()[i];
        along[c] += dy.values()[i] * normal(i, c);
      });
      each([&](std::size_t i, std::size_t c) {
        all_y[i] = normal(i, c) * gain.values()[c] + bias.values()[c];
        all_dx[i] = gain.values()[c] * inverse(c) *
                    (dy.values()[i] - slopes[c] / of_channel - normal(i, c) * along[c] / of_channel);
      });
      check(y, all_y, 4);
      check(dx, all_dx, 4);
      check(only_dy, slopes);
    }
  }

private:
  kernels::Stream stream() const { return device_.stream(0); }

  // The tolerance allows for rounding the result and for fp32 arithmetic; `factor` widens it for sums whose
  // terms cancel.
  void check(GpuNumbers& found, const std::vector<double>& expected, double factor = 1) const {
    found.read();
    REQUIRE(found.values().size() == expected.size());
    const double unit = found.array().precision == Precision::fp32 ? unit_of(Precision::fp32) : unit_;
    double worst = 0, most = 1;
    for (const double value : expected) most = std::max(most, std::abs(value));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double error = std::abs(found.values()[i] - expected[i]);
      worst = std::max(worst, std::isnan(error) ? INFINITY : error);
    }
    CHECK(worst <= factor * (unit + 32 * unit_of(Precision::fp32)) * most);
  }

  CudaArithmetic& device_;
  const Precision precision_;
  const double unit_;
};

// Replays kernels in a few KB of memory, so that large ones take several launches.
void check_replays(CudaArithmetic& device, Precision precision) {
  const double e = element_bytes(precision);
  const auto arrays = [&](double rows, double width) { return RowArrays{e * rows * width, width, e}; };
  const Kernel cases[] = {
      moves(1e6),
      moves(64 * 1024, 2, 1),
      moves(64),
      moves(5 * 16000, 1, 1.5),
      norm_forward(arrays(300, 96)),
      norm_backward(arrays(41, 7)),
      norm_parameters(arrays(3, 1000)),
      softmax_forward(arrays(100, 128)),
      softmax_backward(arrays(100, 33)),
      softmax_backward(arrays(64, 33), true),
      softmax_forward({4 * 64 * 8, 8, 4}),  // a router's, in fp32
      column_sums(arrays(1000, 24)),
      channel_sums(8, arrays(8 * 6, 49)),
      batch_norm(MemoryForm::batch_norm_forward, 16, arrays(16 * 3, 64)),
      batch_norm(MemoryForm::batch_norm_sums, 4, arrays(4 * 2, 121)),
      batch_norm(MemoryForm::batch_norm_backward, 4, arrays(4 * 9, 121)),
  };
  constexpr std::size_t kMost = 16384;
  for (Kernel kernel : cases) {
    kernel.count = 2;
    CAPTURE(static_cast<int>(kernel.form), kernel.bytes, kernel.width);
    OwnedArray memory;
    std::size_t asked = 0;
    const GiveMemory give = [&](std::size_t bytes, Precision) {
      asked = bytes;
      memory = OwnedArray(device, bytes / 4 + 1, Precision::fp32);
      return memory->data;
    };
    const Replayed done = replay_memory(device.stream(0), kernel, precision, precision, kMost, give);
    CHECK(done.flops == 0);
    CHECK(done.bytes == Approx(2 * kernel.bytes).epsilon(kernel.width > 0 ? 1e-12 : 0.01));
    // The limit does not apply to a single row, or to the planes of a single sample.
    CHECK(asked <= kMost + 10000);
    device.settle(0);
    CHECK(device.replay(0, kernel, precision).bytes == Approx(done.bytes).epsilon(0.01));
    device.settle(0);
  }
}

}  // namespace

TEST_CASE("kernels bound by memory on a GPU", "[gpu]") {
  const auto device = gpu_or_none();
  if (!device) return;
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    CAPTURE(name_of(precision));
    Kernels kernels(*device, precision);
    kernels.check_elements();
    kernels.check_norms();
    kernels.check_softmax();
    kernels.check_column_sums();
    kernels.check_batch_norm();
  }
}

TEST_CASE("kernels bound by memory are replayed on a GPU as their form says", "[gpu]") {
  const auto device = gpu_or_none();
  if (!device) return;
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
    CAPTURE(name_of(precision));
    check_replays(*device, precision);
  }
}

#endif
