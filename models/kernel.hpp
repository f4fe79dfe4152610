// One kernel of a layer: what it moves and computes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rehearse {

// What a kernel that is bound by memory computes. Rows are contiguous; where there are channels,
// they are the planes of [samples, channels, height x width].
enum class MemoryForm : std::uint8_t {
  element_wise,         // also copies, look-ups and pooling
  norm_forward,         // layer or RMS norm of each row: reads x, writes y
  norm_backward,        // reads x and dy, writes dx
  norm_parameters,      // gradients of gain and bias: reads x and dy, sums over the rows
  softmax_forward,      // of each row: reads x, writes y
  softmax_backward,     // reads y and dy, writes dx; a soft-capped one reads x, too
  column_sums,          // a bias' gradient: reads dy, sums over the rows
  channel_sums,         // that of a convolution: reads dy, sums over each channel
  batch_norm_forward,   // reads x for the statistics of each channel and again to normalise it, writes y
  batch_norm_sums,      // backward: reads x and dy, sums over each channel
  batch_norm_backward,  // reads both again, writes dx
};

// By which kernels attention is computed: one after the other, with its scores in memory; or fused, without
// them (Dao et al., "FlashAttention", 2022, arXiv 2205.14135; Dao, "FlashAttention-2", 2023, arXiv
// 2307.08691; Shah et al., "FlashAttention-3", 2024, arXiv 2407.08608).
enum class AttentionKernels : std::uint8_t { unfused, flash_1, flash_2, flash_3 };
inline constexpr std::array<std::string_view, 4> kAttentionKernelsNames = {"unfused", "flash-1", "flash-2",
                                                                           "flash-3"};

// The geometry of a convolution over maps [samples, channels, height, width], and which pass of it this is.
struct ConvolutionShape {
  enum class Pass : std::uint8_t { forward, backward_input, backward_weight } pass = Pass::forward;
  double samples = 0;  // 0: not known
  int in_channels = 0, out_channels = 0;
  int height = 0, width = 0;  // of the input
  int kernel_height = 1, kernel_width = 1, stride = 1, padding_height = 0, padding_width = 0;

  int out_height() const { return (height + 2 * padding_height - kernel_height) / stride + 1; }
  int out_width() const { return (width + 2 * padding_width - kernel_width) / stride + 1; }
};

// One kernel of a layer, or `count` equal ones. Times follow from a device: simulator/costs/compute.hpp.
struct Kernel {
  enum class Kind {
    gemm,             // `batch` products of [m,k] x [k,n]
    convolution,      // an implicit product of the same m, n, k
    attention,        // a batched product inside unfused attention (scores or values)
    memory,           // element-wise, normalisation, softmax, pooling: bound by memory
    fixed,            // measured: takes `seconds` on the device it was measured on
    fused_attention,  // the products of attention for the scores that are not masked, and its softmax
  };
  Kind kind = Kind::memory;
  double m = 0, n = 0, k = 0, batch = 1;
  double bytes = 0;  // moved to and from device memory by one of them
  // The same convolution by Winograd's algorithm: `batch` products of this shape, and what they and the
  // transforms around them move. batch 0: it does not apply.
  struct Winograd {
    double m = 0, n = 0, k = 0, batch = 0, bytes = 0;
  } winograd;
  double seconds = 0;  // kind fixed
  // kind fixed: kernels in this time that the device's process has to launch; a grouped product of experts:
  // how many experts have a product in it.
  double launches = 0;
  bool routed = false;  // computes rows that a router sent to experts, which a process counts as they come
  double count = 1;
  // The model's FLOPs are so many times those computed: fused attention leaves masked scores out, which the
  // model's count, and forms the others again in the backward pass, which they do not.
  double counted = 1;
  AttentionKernels fused = AttentionKernels::unfused;  // kind fused_attention
  bool backward = false;                               // kind fused_attention
  bool wide = false;                                   // kind gemm: its operands are not cast
  bool loss = false;                                   // softmax and cross-entropy behind the model's outputs

  // How devices carry it out; no cost depends on what follows. A kernel bound by memory reads `reads` arrays
  // of equal size and writes `writes` (a mask is part of one), with rows of `width` elements of `element`
  // bytes; 0: it has no rows.
  MemoryForm form = MemoryForm::element_wise;
  float reads = 1, writes = 1, element = 0;
  int channels = 0;
  double width = 0;
  ConvolutionShape convolution;

  double flops() const { return 2 * m * n * k * batch * count; }  // multiply and add count as two
  double rows() const { return width > 0 ? bytes / (reads + writes) / element / width : 0; }
};

}  // namespace rehearse
