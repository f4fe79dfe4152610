// Stores arrays of equal size in a single allocation.
#pragma once

#include "backend/training/arithmetic.hpp"

namespace rehearse {

class EqualArrays {
public:
  EqualArrays() = default;
  EqualArrays(Arithmetic& arithmetic, std::size_t count, std::size_t elements, Precision precision)
      : elements_(elements), stride_(stride(elements)), whole_(arithmetic, count * stride_, precision) {}
  // Returns the distance, in elements, between the beginnings of two successive arrays of `elements`
  // elements.
  static constexpr std::size_t stride(std::size_t elements) {
    constexpr std::size_t kEach = 128;  // products read fastest from multiples of 256 bytes
    return (elements + kEach - 1) / kEach * kEach;
  }
  bool empty() const { return elements_ == 0; }
  // Throws std::out_of_range if there is no array with this number.
  Array operator[](std::size_t number) const { return whole_->part(number * stride_, elements_); }

private:
  std::size_t elements_ = 0, stride_ = 0;
  OwnedArray whole_;
};

}  // namespace rehearse
