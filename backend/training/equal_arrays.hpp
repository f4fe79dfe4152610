// Arrays of one size in one allocation.
#pragma once

#include "backend/training/arithmetic.hpp"

namespace rehearse {

class EqualArrays {
public:
  EqualArrays() = default;
  EqualArrays(Arithmetic& arithmetic, std::size_t count, std::size_t elements, Precision precision)
      : elements_(elements), stride_(stride(elements)), whole_(arithmetic, count * stride_, precision) {}
  // Elements from the beginning of an array of so many to that of the next.
  static constexpr std::size_t stride(std::size_t elements) {
    constexpr std::size_t kEach = 128;  // matrix products read fastest what begins at a multiple of 256 bytes
    return (elements + kEach - 1) / kEach * kEach;
  }
  bool empty() const { return elements_ == 0; }
  // std::out_of_range if there is no such array.
  Array operator[](std::size_t number) const { return whole_->part(number * stride_, elements_); }

private:
  std::size_t elements_ = 0, stride_ = 0;
  OwnedArray whole_;
};

}  // namespace rehearse
