// Implements training arithmetic on processors in fp32, with one thread per stream and Eigen's matrix
// products.
#pragma once

#include <vector>

#include "backend/training/arithmetic.hpp"

namespace rehearse {

// Arrays are in the process's memory. Throws RunError for bf16 and tf32 arrays. replay() accepts kernels of
// any precision; it computes their products in fp32, convolutions as the equivalent products, and
// memory-bound kernels in their form, on fp32 numbers of as many bytes; those over channels become copies.
class HostArithmetic : public Arithmetic {
public:
  explicit HostArithmetic(int streams = 1);
  ~HostArithmetic() override;

  std::string device_name() const override;  // the processor's name in /proc/cpuinfo
  DeviceTraits traits() const override;
  int streams() const override { return static_cast<int>(scratch_.size()); }
  Array allocate(std::size_t elements, Precision precision) override;
  void release(const Array& array) override;
  void settle(int) override {}
  Timed time(int stream, const std::function<void()>& issue) override;
  void nothing(int stream) override;
  void copy_to_device(int stream, const float* from, const Array& to) override;
  void copy_to_host(int stream, const Array& from, float* to) override;
  void copy(int stream, const Array& from, const Array& to) override;
  void gemm(int stream, const MatrixShape& shape, bool transpose_a, bool transpose_b, float alpha,
            const Array& a, const Array& b, float beta, const Array& c) override;
  void add_bias(int stream, const Array& y, const Array& bias, bool activate) override;
  void activation_backward(int stream, const Array& output, const Array& gradient) override;
  void column_sums(int stream, const Array& gradient, const Array& sums, bool accumulate) override;
  void softmax_cross_entropy(int stream, const Array& logits, const Array& labels, float scale,
                             const Array& losses, const Array& gradient) override;
  void row_maxima(int stream, const Array& logits, const Array& maxima) override;
  void exponential_sums(int stream, const Array& logits, const RowLabels& labels, const Array& maxima,
                        const Array& sums, const Array& label_logits) override;
  void split_cross_entropy(int stream, const Array& logits, const RowLabels& labels, const RowSums& rows,
                           float scale, const Array& losses, const Array& gradient) override;
  void largest(int stream, const Array& x, const Array& y) override;
  void add(int stream, const Array& x, const Array& y) override;
  void scale(int stream, float factor, const Array& x) override;
  void update(int stream, const OptimizerSettings& optimizer, long step,
              const OptimizerArrays& arrays) override;
  std::unique_ptr<TransformerArithmetic> transformer() override;
  Replayed replay(int stream, const Kernel& kernel, Precision precision) override;
  void replay_within(double bytes) override;

private:
  Array scratch(int stream, std::size_t elements);
  Replayed replay_memory(int stream, const Kernel& kernel);
  struct ReplayPlace {
    Array recent, others;
  };
  ReplayPlace next_place(int stream, std::size_t recent, std::size_t others);
  std::vector<Array> scratch_;  // of replay(), one per stream; grows on demand
  // replay_within(): length of the memory over which kernels take turns, and where the next one begins.
  std::size_t spread_ = 0, next_ = 0;
};

}  // namespace rehearse
