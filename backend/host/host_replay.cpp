// Replays kernels on processors: products with the operands transposed as in training, and memory-bound
// kernels in the form that they state.
#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/host/host_arithmetic.hpp"
#include "backend/host/wide_code.hpp"
#include "backend/training/replay.hpp"
#include "backend/training/transformer_elements.hpp"

namespace rehearse {
namespace {

// Size of the memory that replay() works on, unless a single product needs more: larger than any cache, so
// that memory-bound kernels really are memory-bound.
constexpr std::size_t kScratchElements = std::size_t{64} << 20;

// The arrays of a memory-bound kernel, `count` elements each in rows of `width`, taken from scratch memory.
struct MemoryArrays {
  const float* reads[3];
  float* writes[2];
  float *row, *sums;  // of `width` elements
  long count = 0, width = 0;
};

void by_element(const WideCode& code, const Kernel& kernel, const MemoryArrays& m) {
  const bool activates = kernel.form != MemoryForm::element_wise;
  const bool gated = activates && kernel.reads >= (kernel.form == MemoryForm::activation_forward ? 2 : 3);
  if (kernel.form == MemoryForm::activation_forward)
    return gated ? code.gate(m.reads[0], m.reads[1], m.count, m.writes[0])
                 : code.gelu(m.reads[0], m.count, m.writes[0]);
  if (kernel.form == MemoryForm::activation_backward)
    return gated ? code.gate_backward(m.reads[0], m.reads[1], m.reads[2], m.count, m.writes[0], m.writes[1])
                 : code.gelu_backward(m.reads[0], m.reads[1], m.count, m.writes[0]);
  if (kernel.writes < 1) {
    m.sums[0] = code.inner_product(m.reads[0], m.reads[1], m.count);
  } else if (kernel.reads < 2) {
    std::copy_n(m.reads[0], m.count, m.writes[0]);
  } else {
    code.add(m.reads[0], m.count, m.writes[0]);  // which is read, too
    if (kernel.reads >= 3) code.add(m.reads[1], m.count, m.writes[0]);
  }
  if (kernel.writes >= 2) std::copy_n(m.reads[0], m.count, m.writes[1]);
}

void by_row(const WideCode& code, const Kernel& kernel, const MemoryArrays& m) {
  float statistics[2] = {0.5f, 2.0f};
  for (long begin = 0; begin < m.count; begin += m.width) {
    const float *x = m.reads[0] + begin, *dy = m.reads[1] + begin;
    float* y = m.writes[0] + begin;
    const NormRow row{m.width, x, m.row, m.row, statistics};
    switch (kernel.form) {
      case MemoryForm::norm_forward:
        code.norm(row, elements::kNormEpsilon, y);
        break;
      case MemoryForm::norm_backward:
        code.norm_backward(row, dy, y);
        break;
      case MemoryForm::norm_parameters:
        code.norm_gradients(row, dy, m.sums, m.row);
        break;
      case MemoryForm::softmax_forward: {
        const float sum = code.exponentials(x, code.maximum(x, m.width), m.width, y);
        code.scale(1 / sum, m.width, y);
        break;
      }
      case MemoryForm::softmax_backward:
        code.score_slopes(x, dy, code.inner_product(x, dy, m.width), 0.125f, m.width, y);
        break;
      default:  // column_sums
        code.add(x, m.width, m.sums);
    }
  }
}

bool sums_channels(MemoryForm form) {
  return form >= MemoryForm::channel_sums;
}

}  // namespace

Array HostArithmetic::scratch(int stream, std::size_t elements) {
  Array& array = scratch_.at(static_cast<std::size_t>(stream));
  if (array.elements < elements) {
    release(std::exchange(array, {}));
    array = allocate(elements, Precision::fp32);
    for (std::size_t i = 0; i < elements; ++i) elements::at(array)[i] = filler(i);
  }
  return array;
}

// Kernels over channels, which only convolutional networks have, are replayed as copies.
Replayed HostArithmetic::replay_memory(int stream, const Kernel& kernel) {
  const bool rows = has_rows(kernel.form) && kernel.width >= 1 && !sums_channels(kernel.form);
  const double arrays = static_cast<double>(kernel.reads + kernel.writes);
  const auto width = rows ? static_cast<std::size_t>(std::llround(kernel.width)) : std::size_t{1};
  const auto whole = [&](double elements) {  // in whole rows
    return std::max(std::size_t{1}, static_cast<std::size_t>(std::llround(elements)) / width) * width;
  };
  const std::size_t wanted = whole(kernel.bytes / arrays / 4);
  const std::size_t count = std::min(wanted, whole(static_cast<double>(kScratchElements) / 5));
  const Array memory = scratch(stream, 5 * count + 2 * width);
  MemoryArrays m;
  m.count = static_cast<long>(count);
  m.width = static_cast<long>(width);
  for (std::size_t i = 0; i < 3; ++i) m.reads[i] = elements::at(memory.part(i * count, count));
  for (std::size_t i = 0; i < 2; ++i) m.writes[i] = elements::at(memory.part((3 + i) * count, count));
  m.row = elements::at(memory.part(5 * count, width));
  m.sums = elements::at(memory.part(5 * count + width, width));
  const auto launches =
      static_cast<long>(std::max(1.0, std::round(kernel.count)) *
                        std::ceil(static_cast<double>(wanted) / static_cast<double>(count)));
  const WideCode& code = wide_code();
  for (long launch = 0; launch < launches; ++launch) {
    if (sums_channels(kernel.form))
      std::copy_n(m.reads[0], m.count, m.writes[0]);
    else if (rows)
      by_row(code, kernel, m);
    else
      by_element(code, kernel, m);
  }
  return {0, static_cast<double>(launches) * arrays * 4 * static_cast<double>(count)};
}

Replayed HostArithmetic::replay(int stream, const Kernel& kernel, Precision) {
  if (kernel.kind == Kernel::Kind::memory && kernel.bytes > 0) return replay_memory(stream, kernel);
  const ReplayPlan plan = plan_replay(kernel, kScratchElements);
  Replayed done;
  for (const ReplayPart& part : {plan.main, plan.rest}) {
    const Array memory = scratch(stream, part.launches > 0 ? part.scratch_elements() : 0);
    const bool of_weights = kernel.transposed == Transposed::a;
    // Gradients of weights are stored like the weights, [inputs, outputs], where the kernel is written as
    // [outputs, inputs].
    const MatrixShape shape = of_weights ? MatrixShape{part.shape.n, part.shape.m, part.shape.k} : part.shape;
    const auto [m, n, k] = shape;
    for (long launch = 0; launch < part.launches; ++launch) {
      std::size_t begin = 0;
      const auto next = [&](long rows, long columns) {
        const auto elements = static_cast<std::size_t>(rows * columns);
        begin += elements;
        return memory.part(begin - elements, elements);
      };
      for (long i = 0; i < part.batch; ++i) {
        const Array a = next(m, k), b = next(k, n), c = next(m, n);
        gemm(stream, shape, of_weights, kernel.transposed == Transposed::b, 1, a, b, 0, c);
        // Counts what was multiplied, not what was requested.
        done.flops +=
            2.0 * static_cast<double>(a.elements) * static_cast<double>(b.elements) / static_cast<double>(k);
        done.bytes += static_cast<double>(a.bytes() + b.bytes() + c.bytes());
      }
    }
  }
  return done;
}

}  // namespace rehearse
