// Divides a block of device memory into pieces.
#pragma once

#include "backend/training/arithmetic.hpp"

namespace rehearse {

// Each piece begins at a multiple of 256 bytes from `begin`. If `begin` is null, only counts the bytes.
class Pieces {
public:
  explicit Pieces(std::byte* begin) : begin_(begin) {}

  Array take(std::size_t elements, Precision precision) {
    constexpr std::size_t kAlignment = 256;
    const Array array{begin_ == nullptr ? nullptr : begin_ + bytes_, elements, precision};
    bytes_ += (array.bytes() + kAlignment - 1) / kAlignment * kAlignment;
    return array;
  }
  bool are_there() const { return begin_ != nullptr; }
  std::size_t bytes() const { return bytes_; }  // so far

private:
  std::byte* begin_;
  std::size_t bytes_ = 0;
};

}  // namespace rehearse
