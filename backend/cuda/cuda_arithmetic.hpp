// Implements training arithmetic on an NVIDIA GPU: matrix products with cuBLAS, convolutions with cuDNN where
// it is installed, everything else with small kernels.
#pragma once

#include <memory>
#include <optional>

#include "backend/training/arithmetic.hpp"

struct CUstream_st;  // cudaStream_t points to it

namespace rehearse {

// Supports fp32, tf32 and bf16; replay() also supports fp16. Results are the same in every run: no sum
// depends on the order in which threads run.
class CudaArithmetic : public Arithmetic {
public:
  // Creates `streams` CUDA streams, each with a cuBLAS handle, on the visible GPU number `device`.
  CudaArithmetic(int device, int streams);
  ~CudaArithmetic() override;

  int device() const;
  CUstream_st* stream(int number) const;     // for events, NCCL and copies ordered with these operations
  std::size_t most_allocated_bytes() const;  // peak of this object's allocations

  std::string device_name() const override;
  DeviceTraits traits() const override;
  int streams() const override;
  Array allocate(std::size_t elements, Precision precision) override;
  void release(const Array& array) override;
  void settle(int stream) override;
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
  std::unique_ptr<DeviceCompressor> compressor(const CompressionTask& task) override;
  std::unique_ptr<TransformerArithmetic> transformer() override;
  Replayed replay(int stream, const Kernel& kernel, Precision precision) override;
  std::vector<std::string> notes() const override;

private:
  struct Device;
  std::optional<Replayed> convolve(int stream, const Kernel& kernel, Precision precision);
  Array scratch(int stream, std::size_t bytes, Precision precision);
  std::unique_ptr<Device> device_;
};

}  // namespace rehearse
