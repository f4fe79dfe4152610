// Loads and stores numbers in device memory, whatever name a library has for their type.
#pragma once

#include <cstddef>
#include <cstring>

#include "backend/training/element_wise.hpp"

namespace stand_in {

enum class Number { fp32, fp16, bf16 };

inline float load(const std::byte* from, Number type) {
  const auto as = [from]<class T>(T value) {
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  if (type == Number::fp32) return as(0.0f);
  if (type == Number::fp16) return static_cast<float>(as(_Float16{}));
  return rehearse::to_float(as(rehearse::Bfloat16{}));
}

inline void store(std::byte* to, Number type, float value) {
  const auto as = [to](auto number) { std::memcpy(to, &number, sizeof number); };
  if (type == Number::fp32) return as(value);
  if (type == Number::fp16) return as(static_cast<_Float16>(value));
  as(rehearse::rounded<rehearse::Bfloat16>(value));
}

}  // namespace stand_in
