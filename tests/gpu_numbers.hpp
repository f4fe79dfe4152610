// Copies numbers to GPU memory in a given precision, and reads them back as double.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_arithmetic.hpp"
#include "backend/runtime/half_bits.hpp"
#include "backend/training/sample_data.hpp"
#include "models/text/error.hpp"
#include "tests/catch.hpp"

namespace rehearse::test {

// Returns nullptr, after a warning with the reason, if no GPU is usable.
inline std::unique_ptr<CudaArithmetic> gpu_or_none() {
  try {
    return std::make_unique<CudaArithmetic>(0, 1);
  } catch (const RunError& why) {
    WARN("skipped: " << why.what());
    return nullptr;
  }
}

inline std::vector<float> some(std::uint64_t number, std::size_t count) {
  std::vector<float> result(count);
  standard_normal(7, RandomUse::features, number, result.data(), static_cast<long>(count));
  return result;
}

// Returns the spacing of numbers at 1.
inline double unit_of(Precision precision) {
  return precision == Precision::fp16 ? 0x1p-10 : element_bytes(precision) < 4 ? 0x1p-7 : 0x1p-23;
}

class GpuNumbers {
public:
  GpuNumbers(CudaArithmetic& device, std::size_t count, Precision precision)
      : device_(device), array_{nullptr, count, precision} {
    const bool halves = precision == Precision::fp16;  // two in each fp32 number that is copied
    memory_ = OwnedArray(device, halves ? (count + 1) / 2 : count, halves ? Precision::fp32 : precision);
    array_.data = memory_->data;
  }
  GpuNumbers(CudaArithmetic& device, const std::vector<float>& numbers, Precision precision)
      : GpuNumbers(device, numbers.size(), precision) {
    std::vector<float> written = numbers;
    if (precision == Precision::fp16) {
      written.assign(memory_->elements, 0);
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::uint32_t half = half_bits(numbers[i]);
        written[i / 2] = float_of(i % 2 == 0 ? half : bits_of(written[i / 2]) | half << 16);
      }
    }
    device.copy_to_device(0, written.data(), memory_);
    read();
  }

  void read() {
    std::vector<float> found(memory_->elements);
    device_.copy_to_host(0, memory_, found.data());
    values_.clear();
    for (std::size_t i = 0; i < array_.elements; ++i)
      values_.push_back(static_cast<double>(
          array_.precision == Precision::fp16
              ? float_of_half(static_cast<std::uint16_t>(bits_of(found[i / 2]) >> (i % 2 == 0 ? 0 : 16)))
              : found[i]));
  }
  const std::vector<double>& values() const { return values_; }  // as last read
  const Array& array() const { return array_; }
  operator const Array&() const { return array_; }

private:
  CudaArithmetic& device_;
  Array array_;
  OwnedArray memory_;
  std::vector<double> values_;
};

}  // namespace rehearse::test
