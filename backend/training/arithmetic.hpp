// The operations on a device's memory that training takes: carried out by processors or by a GPU.
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

// Elements in the memory of a device; a view, which owns nothing. tf32 is fp32 in memory.
struct Array {
  std::byte* data = nullptr;
  std::size_t elements = 0;
  Precision precision = Precision::fp32;

  std::size_t element_size() const { return static_cast<std::size_t>(element_bytes(precision)); }
  std::size_t bytes() const { return elements * element_size(); }
  // `count` elements from `first` on; std::out_of_range if they are not all there.
  Array part(std::size_t first, std::size_t count) const;
};

// Where share i of n begins among E elements: E i/n. Shares differ by one element at most.
constexpr std::size_t share_begin(std::size_t elements, int i, int n) {
  return elements * static_cast<std::size_t>(i) / static_cast<std::size_t>(n);
}
// Elements [E i/n, E (i+1)/n) of `whole`.
Array share(const Array& whole, int i, int n);

struct MatrixShape {
  long m = 0, n = 0, k = 0;
};

// What replay() really did: multiply and add are two FLOPs; each byte read or written counts once.
struct Replayed {
  double flops = 0, bytes = 0;
  bool convolution = false;  // of its own geometry, and not the equal product
};

// What a step of an optimizer reads and writes, all of the same length. Arrays that the optimizer has no use
// for stay empty. `master` is in fp32; where weights are fp32 it is `weights` itself.
struct OptimizerArrays {
  Array weights, master, gradient, momentum, second_moment;
};

// The classes of rows of which a rank has some, from `first_class` on.
struct RowLabels {
  Array labels;  // by row: number of its class, stored in fp32
  std::size_t first_class = 0;
};
// What all ranks together know of each row's logits; all fp32.
struct RowSums {
  Array maxima, sums, label_logits;
};

// What a device is. Of a machine's processors, a device is one.
struct DeviceTraits {
  double memory_bytes = 0;     // of a processor, its share of the machine's
  int compute_units = 0;       // SMs; 0: not a GPU
  int compute_capability = 0;  // 90 of an H100; 0: not a GPU
  // A measured time covers `sample_s` seconds of operations, but at most `sample_operations` of them.
  double sample_s = 0;
  long sample_operations = 1;
};

struct Timed {
  double seconds = 0;
  double waited_s = 0;  // that other programs had the processor, already taken off
};

// Every operation is issued to a stream and may still be running when it returns; on processors it is done.
// Operations of one stream run in order. A stream is used by one thread at a time, different ones by
// different threads. Matrices are row-major without gaps. Arrays are fp32, tf32 or bf16; sums are formed in
// fp32. RunError if the device fails, or has no arithmetic for a precision.
class Arithmetic {
public:
  virtual ~Arithmetic() = default;
  virtual std::string device_name() const = 0;
  virtual DeviceTraits traits() const = 0;
  virtual int streams() const = 0;

  // Zeroed, and aligned to 64 bytes at least. RunError names what was asked for if there is not as much.
  virtual Array allocate(std::size_t elements, Precision precision) = 0;
  virtual void release(const Array& array) = 0;  // as allocated; nothing may be running on it
  virtual void settle(int stream) = 0;           // returns when all that was issued has ended

  // What the operations that `issue` issues take on the stream, from the first one's begin to the last one's
  // end, and returns when they have ended. On a GPU all are issued before the first begins.
  virtual Timed time(int stream, const std::function<void()>& issue) = 0;
  // The smallest kernel: an empty one on GPUs, 64 bytes moved on processors.
  virtual void nothing(int stream) = 0;

  // The host's numbers are fp32 and are rounded to nearest even. `from` may be changed as soon as
  // copy_to_device returns; copy_to_host returns when `to` is written.
  virtual void copy_to_device(int stream, const float* from, const Array& to) = 0;
  virtual void copy_to_host(int stream, const Array& from, float* to) = 0;
  virtual void copy(int stream, const Array& from, const Array& to) = 0;  // also from precision to precision

  // c[m,n] = alpha op(a) op(b) + beta c, op(a) being [m,k] and op(b) [k,n]; `transpose_a`: a is stored [k,m].
  // a and b have one precision, c that one or fp32; where beta is 0, c is not read.
  virtual void gemm(int stream, const MatrixShape& shape, bool transpose_a, bool transpose_b, float alpha,
                    const Array& a, const Array& b, float beta, const Array& c) = 0;
  // y[row, j] += bias[j]; then, if `activate`, the activation function of it: a ReLU with a smooth knee,
  // whose formula stands in element_wise.hpp.
  virtual void add_bias(int stream, const Array& y, const Array& bias, bool activate) = 0;
  // gradient[i] times the activation function's slope where it gave output[i].
  virtual void activation_backward(int stream, const Array& output, const Array& gradient) = 0;
  // sums[j] = sum over rows of gradient[row, j], + sums[j] if `accumulate`.
  virtual void column_sums(int stream, const Array& gradient, const Array& sums, bool accumulate) = 0;
  // For each row r of logits [rows, classes] (fp32), with p = softmax of the row and labels[r] the number of
  // its class (stored in fp32): losses[r] = -ln p[label], in fp32, and gradient[r, j] = scale (p[j] - [j ==
  // label]). `gradient` may be `logits`.
  virtual void softmax_cross_entropy(int stream, const Array& logits, const Array& labels, float scale,
                                     const Array& losses, const Array& gradient) = 0;
  // The same where a row's classes are spread over ranks, each with a run of them, `logits` here beginning
  // with class `first_class`. First the largest logit of each row here; all ranks' largest are `maxima` of
  // the next, which gives each row's sum of exp(logit - maximum) here, and the logit of its label, or 0 if
  // that is not here. With both summed over the ranks, the third gives the losses and the gradient of what is
  // here.
  virtual void row_maxima(int stream, const Array& logits, const Array& maxima) = 0;
  virtual void exponential_sums(int stream, const Array& logits, const RowLabels& labels, const Array& maxima,
                                const Array& sums, const Array& label_logits) = 0;
  virtual void split_cross_entropy(int stream, const Array& logits, const RowLabels& labels,
                                   const RowSums& rows, float scale, const Array& losses,
                                   const Array& gradient) = 0;
  virtual void add(int stream, const Array& x, const Array& y) = 0;      // y += x
  virtual void largest(int stream, const Array& x, const Array& y) = 0;  // y = max(x, y)
  virtual void scale(int stream, float factor, const Array& x) = 0;      // x *= factor

  // Step number `step`, from 1 on, of the optimizer over flat arrays; formulas: optimizer.hpp.
  virtual void update(int stream, const OptimizerSettings& optimizer, long step,
                      const OptimizerArrays& arrays) = 0;

  // Compression of gradients that lie on the device, which this must outlive; null: it has none.
  virtual std::unique_ptr<DeviceCompressor> compressor(const CompressionTask& task);
  // The operations of transformers; null: it has none.
  virtual std::unique_ptr<TransformerArithmetic> transformer();

  // A kernel of a model of which only shapes are known, on memory of its own whose numbers mean nothing: a
  // real (batched) matrix product, a convolution or the product of the same m, n, k, or what its form says,
  // or as many bytes copied. Sizes are rounded to whole numbers. RunError for measured kernels, which have no
  // shape.
  virtual Replayed replay(int stream, const Kernel& kernel, Precision precision) = 0;
  // On what was replayed so far: what carried it out, where that is a choice.
  virtual std::vector<std::string> notes() const { return {}; }
};

// An array that is released with its owner.
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
