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

void HostArithmetic::replay_within(double bytes) {
  const double most = 4.0 * static_cast<double>(kScratchElements);
  spread_ = static_cast<std::size_t>(std::clamp(bytes, 0.0, most)) / 4;
  next_ = 0;
}

// Returns the memory of a kernel's next launch: an operand that the kernel before has written, always in the
// same place, and its other arrays, which take turns over `spread_`.
HostArithmetic::ReplayPlace HostArithmetic::next_place(int stream, std::size_t recent, std::size_t others) {
  const Array memory = scratch(stream, recent + std::max(spread_, others));
  if (next_ + others > spread_) next_ = 0;
  const std::size_t begin = std::exchange(next_, next_ + others);
  return {memory.part(0, recent), memory.part(recent + begin, others)};
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
  const auto launches =
      static_cast<long>(std::max(1.0, std::round(kernel.count)) *
                        std::ceil(static_cast<double>(wanted) / static_cast<double>(count)));
  const WideCode& code = wide_code();
  // Only the arrays that the kernel uses take up memory.
  const bool two_reads = kernel.reads >= 2, three_reads = kernel.reads >= 3, two_writes = kernel.writes >= 2;
  for (long launch = 0; launch < launches; ++launch) {
    const std::size_t others =
        (two_reads ? count : 0) + (three_reads ? count : 0) + count + (two_writes ? count : 0);
    const ReplayPlace place = next_place(stream, count + 2 * width, others);
    std::size_t begin = 0;
    const auto next = [&](bool used) {
      const Array array = place.others.part(used ? begin : 0, count);
      begin += used ? count : 0;
      return elements::at(array);
    };
    MemoryArrays m;
    m.count = static_cast<long>(count);
    m.width = static_cast<long>(width);
    m.reads[0] = elements::at(place.recent.part(0, count));
    m.row = elements::at(place.recent.part(count, width));
    m.sums = elements::at(place.recent.part(count + width, width));
    m.reads[1] = next(two_reads);
    m.reads[2] = next(three_reads);
    m.writes[0] = next(true);
    m.writes[1] = next(two_writes);
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
    const bool of_weights = kernel.transposed == Transposed::a;
    // Gradients of weights are stored like the weights, [inputs, outputs], where the kernel is written as
    // [outputs, inputs].
    const MatrixShape shape = of_weights ? MatrixShape{part.shape.n, part.shape.m, part.shape.k} : part.shape;
    const auto [m, n, k] = shape;
    // The backward pass multiplies what it has just computed: the second operand of weights' gradients.
    const std::size_t of_a = static_cast<std::size_t>(m * k), of_b = static_cast<std::size_t>(k * n),
                      of_c = static_cast<std::size_t>(m * n), batch = static_cast<std::size_t>(part.batch);
    const std::size_t recent = of_weights ? of_b : of_a, other = of_weights ? of_a : of_b;
    for (long launch = 0; launch < part.launches; ++launch) {
      const ReplayPlace place = next_place(stream, batch * recent, batch * (other + of_c));
      for (std::size_t i = 0; i < batch; ++i) {
        const Array first = place.recent.part(i * recent, recent),
                    second = place.others.part(i * (other + of_c), other),
                    c = place.others.part(i * (other + of_c) + other, of_c);
        const Array &a = of_weights ? second : first, &b = of_weights ? first : second;
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
