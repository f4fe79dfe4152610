// Defines number formats: the elements of tensors, and which peak of a device a matrix product uses.
#pragma once

#include <array>
#include <string_view>

namespace rehearse {

// Scales of the narrow formats: one in fp32 per tensor (fp8); one of 8 bits per 32 elements (mxfp8: OCP
// Microscaling Formats, 2023); one in fp8 per 16 elements of 4 bits, and one in fp32 per tensor (nvfp4:
// NVIDIA, "Pretraining Large Language Models with NVFP4", 2025, arXiv 2509.25149, section 2).
enum class Precision { fp32, tf32, fp16, bf16, fp8, mxfp8, nvfp4 };

inline constexpr std::array<std::string_view, 7> kPrecisionNames = {"fp32", "tf32",  "fp16", "bf16",
                                                                    "fp8",  "mxfp8", "nvfp4"};

constexpr std::string_view name_of(Precision p) {
  return kPrecisionNames[static_cast<std::size_t>(p)];
}

// Whether only the operands of linear layers are cast to this precision, before each product. Everything
// else, including attention, is computed in bf16 (arXiv 2509.25149, section 4; Transformer Engine's default).
constexpr bool casts_operands(Precision p) {
  return p == Precision::fp8 || p == Precision::mxfp8 || p == Precision::nvfp4;
}

// The precision in which tensors are stored when products are computed in `p`.
constexpr Precision stored_precision(Precision p) {
  if (p == Precision::tf32) return Precision::fp32;
  return casts_operands(p) ? Precision::bf16 : p;
}

// Bytes of one stored element. Cast operands and their scales are temporary and not counted.
constexpr double element_bytes(Precision p) {
  return stored_precision(p) == Precision::fp32 ? 4.0 : 2.0;
}

}  // namespace rehearse
