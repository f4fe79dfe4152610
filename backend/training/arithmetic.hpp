// Declares the operations on device memory that training needs, implemented for processors and for GPUs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/training/optimizer.hpp"
#include "models/model.hpp"
#include "models/precision.hpp"

namespace rehearse {

class DeviceCompressor;       // device_compressor.hpp
class TransformerArithmetic;  // transformer_arithmetic.hpp
struct CompressionTask;

// Elements in the memory of a device: a view, which owns nothing. In memory, tf32 is fp32.
struct Array {
  std::byte* data = nullptr;
  std::size_t elements = 0;
  Precision precision = Precision::fp32;

  std::size_t element_size() const { return static_cast<std::size_t>(element_bytes(precision)); }
  std::size_t bytes() const { return elements * element_size(); }
  // Returns `count` elements from `first` on; throws std::out_of_range if they are not all in the array.
  Array part(std::size_t first, std::size_t count) const;
};

// Returns where share i of n begins among E elements: E i/n. Share sizes differ by one element at most.
constexpr std::size_t share_begin(std::size_t elements, int i, int n) {
  return elements * static_cast<std::size_t>(i) / static_cast<std::size_t>(n);
}
// Returns elements [E i/n, E (i+1)/n) of `whole`.
Array share(const Array& whole, int i, int n);

struct MatrixShape {
  long m = 0, n = 0, k = 0;
};

// The work that replay() really did: a multiply-add is two FLOPs; each byte read or written counts once.
struct Replayed {
  double flops = 0, bytes = 0;
  bool convolution = false;  // computed as a convolution, not as the equivalent product
};

// The arrays that an optimizer step reads and writes, all of the same length. Arrays that the optimizer does
// not need stay empty. `master` is fp32; if weights are fp32, it is `weights` itself.
struct OptimizerArrays {
  Array weights, master, gradient, momentum, second_moment;
};

// The labels of rows whose classes are split over ranks; this rank has the classes from `first_class` on.
struct RowLabels {
  Array labels;  // by row: index of its class, stored in fp32
  std::size_t first_class = 0;
};
// Per-row results over the logits of all ranks; all fp32.
struct RowSums {
  Array maxima, sums, label_logits;
};

// The properties of a device: a GPU, or one of a machine's processors.
struct DeviceTraits {
  double memory_bytes = 0;     // for a processor, its share of the machine's memory
  int compute_units = 0;       // SMs; 0: not a GPU
  int compute_capability = 0;  // 90 for an H100; 0: not a GPU
  // A time measurement covers `sample_s` seconds of operations, but at most `sample_operations` of them.
  double sample_s = 0;
  long sample_operations = 1;
};

struct Timed {
  double seconds = 0;
  double waited_s = 0;  // time in which other programs had the processor; already subtracted
};

// Arithmetic on one device. Every operation is issued to a stream and may still be running when the call
// returns; on processors it is complete by then. Operations of one stream run in order. Only one thread at a
// time uses a stream, but different threads may use different ones. Matrices are row-major without gaps.
// Arrays are fp32, tf32 or bf16; sums are accumulated in fp32. Throws RunError if the device fails or does
// not support a precision.
class Arithmetic {
public:
  virtual ~Arithmetic() = default;
  virtual std::string device_name() const = 0;
  virtual DeviceTraits traits() const = 0;
  virtual int streams() const = 0;

  // Returns zeroed memory that is aligned to at least 64 bytes. If there is not enough memory, throws
  // RunError, which states the requested size.
  virtual Array allocate(std::size_t elements, Precision precision) = 0;
  virtual void release(const Array& array) = 0;  // as allocated; nothing may be using it
  virtual void settle(int stream) = 0;           // returns when all issued work has ended

  // Times the operations that `issue` issues to the stream, from the start of the first to the end of the
  // last, and returns when they have ended. On a GPU all are issued before the first starts.
  virtual Timed time(int stream, const std::function<void()>& issue) = 0;
  // Runs the smallest kernel: an empty one on GPUs, a move of 64 bytes on processors.
  virtual void nothing(int stream) = 0;

  // The host's numbers are fp32; they are rounded to nearest, ties to even. `from` may be changed as soon as
  // copy_to_device() returns; copy_to_host() returns when `to` is written.
  virtual void copy_to_device(int stream, const float* from, const Array& to) = 0;
  virtual void copy_to_host(int stream, const Array& from, float* to) = 0;
  virtual void copy(int stream, const Array& from, const Array& to) = 0;  // also converts between precisions

  // Computes c[m,n] = alpha op(a) op(b) + beta c, where op(a) is [m,k] and op(b) is [k,n]. `transpose_a`: a
  // is stored as [k,m]. a and b have the same precision, c has that one or fp32. If beta is 0, c is not read.
  virtual void gemm(int stream, const MatrixShape& shape, bool transpose_a, bool transpose_b, float alpha,
                    const Array& a, const Array& b, float beta, const Array& c) = 0;
  // Computes y[row, j] += bias[j] and then, if `activate`, applies the activation function: a ReLU with a
  // smooth knee (formula in element_wise.hpp).
  virtual void add_bias(int stream, const Array& y, const Array& bias, bool activate) = 0;
  // Multiplies gradient[i] by the slope of the activation function where its output is output[i].
  virtual void activation_backward(int stream, const Array& output, const Array& gradient) = 0;
  // Computes sums[j] = sum over rows of gradient[row, j], plus the old sums[j] if `accumulate`.
  virtual void column_sums(int stream, const Array& gradient, const Array& sums, bool accumulate) = 0;
  // For each row r of logits [rows, classes] (fp32), let p be the softmax of the row and labels[r] the index
  // of its class (stored in fp32). Computes losses[r] = -ln p[label] in fp32, and gradient[r, j] = scale
  // (p[j] - [j == label]). `gradient` may be `logits`.
  virtual void softmax_cross_entropy(int stream, const Array& logits, const Array& labels, float scale,
                                     const Array& losses, const Array& gradient) = 0;
  // Compute the same where ranks split a row's classes, each with consecutive ones; this rank's `logits`
  // begin with class `first_class`. row_maxima() returns the largest local logit of each row.
  // exponential_sums() takes the `maxima` over all ranks and returns each row's local sum of exp(logit -
  // maximum) and the logit of its label, or 0 if another rank has that class. split_cross_entropy() takes
  // both summed over the ranks, and computes the losses and the gradient of the local logits.
  virtual void row_maxima(int stream, const Array& logits, const Array& maxima) = 0;
  virtual void exponential_sums(int stream, const Array& logits, const RowLabels& labels, const Array& maxima,
                                const Array& sums, const Array& label_logits) = 0;
  virtual void split_cross_entropy(int stream, const Array& logits, const RowLabels& labels,
                                   const RowSums& rows, float scale, const Array& losses,
                                   const Array& gradient) = 0;
  virtual void add(int stream, const Array& x, const Array& y) = 0;      // y += x
  virtual void largest(int stream, const Array& x, const Array& y) = 0;  // y = max(x, y)
  virtual void scale(int stream, float factor, const Array& x) = 0;      // x *= factor

  // Applies step number `step`, from 1 on, of the optimizer to flat arrays; formulas in optimizer.hpp.
  virtual void update(int stream, const OptimizerSettings& optimizer, long step,
                      const OptimizerArrays& arrays) = 0;

  // Returns a compressor for gradients on the device, which this object must outlive, or null if there is
  // none.
  virtual std::unique_ptr<DeviceCompressor> compressor(const CompressionTask& task);
  // Returns the operations of transformers, or null if there are none.
  virtual std::unique_ptr<TransformerArithmetic> transformer();

  // Replays a kernel of a model for which only shapes are known, in scratch memory with arbitrary numbers: a
  // real (batched) matrix product; a convolution or the product of the same m, n, k; the form that a
  // memory-bound kernel states; or a copy of the same number of bytes. Sizes are rounded to whole numbers.
  // Throws RunError for measured kernels, which have no shape.
  virtual Replayed replay(int stream, const Kernel& kernel, Precision precision) = 0;
  // Kernels that replay() runs from now on find in the caches what a training that touches `bytes` in a step
  // leaves there: the operand that the kernel before has just written, and of the others only what fits. 0:
  // all that fits. Devices on which this hardly matters ignore it.
  virtual void replay_within(double bytes) { static_cast<void>(bytes); }
  // Returns notes on what carried out the replays so far, where there is a choice.
  virtual std::vector<std::string> notes() const { return {}; }
};

// An array that its owner releases.
class OwnedArray {
public:
  OwnedArray() = default;
  OwnedArray(Arithmetic& arithmetic, std::size_t elements, Precision precision)
      : arithmetic_(&arithmetic), array_(arithmetic.allocate(elements, precision)) {}
  OwnedArray(OwnedArray&& other) noexcept { swap(other); }
  OwnedArray& operator=(OwnedArray&& other) noexcept {
    swap(other);
    return *this;
  }
  ~OwnedArray() {
    if (arithmetic_) arithmetic_->release(array_);
  }
  operator const Array&() const { return array_; }
  const Array* operator->() const { return &array_; }

private:
  void swap(OwnedArray& other) noexcept {
    std::swap(arithmetic_, other.arithmetic_);
    std::swap(array_, other.array_);
  }
  Arithmetic* arithmetic_ = nullptr;
  Array array_;
};

}  // namespace rehearse
