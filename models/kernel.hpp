// Describes one kernel of a layer: what it moves and computes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rehearse {

// What a memory-bound kernel computes. Rows are contiguous; with channels, they are the planes of [samples,
// channels, height x width].
enum class MemoryForm : std::uint8_t {
  element_wise,        // also copies, look-ups and pooling
  activation_forward,  // element-wise with a tanh or an exponential: GELU, the gate of SwiGLU
  activation_backward,
  adam_update,          // an optimizer step, which models do not list among their kernels
  norm_forward,         // layer or RMS norm of each row: reads x, writes y
  norm_backward,        // reads x and dy, writes dx
  norm_parameters,      // gradients of gain and bias: reads x and dy, sums over the rows
  softmax_forward,      // of each row: reads x, writes y
  softmax_backward,     // reads y and dy, writes dx; with soft-capping also reads x
  column_sums,          // gradient of a bias: reads dy, sums over the rows
  channel_sums,         // gradient of a convolution's bias: reads dy, sums over each channel
  batch_norm_forward,   // reads x for the statistics of each channel and again to normalize it, writes y
  batch_norm_sums,      // backward: reads x and dy, sums over each channel
  batch_norm_backward,  // reads both again, writes dx
};

// Returns whether a form works on rows or planes; others take each element by itself.
constexpr bool has_rows(MemoryForm form) {
  return form > MemoryForm::adam_update;
}
inline constexpr std::array<std::string_view, 14> kMemoryFormNames = {
    "element-wise",  "activation-forward", "activation-backward", "adam-update",        "norm-forward",
    "norm-backward", "norm-parameters",    "softmax-forward",     "softmax-backward",   "column-sums",
    "channel-sums",  "batch-norm-forward", "batch-norm-sums",     "batch-norm-backward"};

// Which operand of a product is stored transposed. A linear layer stores its weights as [inputs, outputs];
// the gradient of its input multiplies by their transpose (b), that of its weights multiplies the transposed
// input (a).
enum class Transposed : std::uint8_t { none, a, b };
inline constexpr std::array<std::string_view, 3> kTransposedNames = {"none", "a", "b"};

// The kernels that compute attention: one after the other, with the scores in memory; or fused, without them
// (Dao et al., "FlashAttention", 2022, arXiv 2205.14135; Dao, "FlashAttention-2", 2023, arXiv 2307.08691;
// Shah et al., "FlashAttention-3", 2024, arXiv 2407.08608).
enum class AttentionKernels : std::uint8_t { unfused, flash_1, flash_2, flash_3 };
inline constexpr std::array<std::string_view, 4> kAttentionKernelsNames = {"unfused", "flash-1", "flash-2",
                                                                           "flash-3"};

// Geometry and pass of a convolution over maps [samples, channels, height, width].
struct ConvolutionShape {
  enum class Pass : std::uint8_t { forward, backward_input, backward_weight } pass = Pass::forward;
  double samples = 0;  // 0: not known
  int in_channels = 0, out_channels = 0;
  int height = 0, width = 0;  // of the input
  int kernel_height = 1, kernel_width = 1, stride = 1, padding_height = 0, padding_width = 0;

  int out_height() const { return (height + 2 * padding_height - kernel_height) / stride + 1; }
  int out_width() const { return (width + 2 * padding_width - kernel_width) / stride + 1; }
};

// One kernel of a layer, or `count` identical ones. simulator/costs/compute.hpp computes its time on a
// device.
struct Kernel {
  enum class Kind {
    gemm,             // `batch` products of [m,k] x [k,n]
    convolution,      // an implicit product of the same m, n, k
    attention,        // a batched product inside unfused attention (scores or values)
    memory,           // element-wise, normalization, softmax, pooling: bound by memory
    fixed,            // measured: takes `seconds` on the device it was measured on
    fused_attention,  // the products of attention for unmasked scores, and its softmax
  };
  Kind kind = Kind::memory;
  double m = 0, n = 0, k = 0, batch = 1;
  double bytes = 0;  // traffic to and from device memory of one such kernel
  // The same convolution with Winograd's algorithm: `batch` products of this shape, and the bytes that they
  // and the surrounding transforms move. batch 0: not applicable.
  struct Winograd {
    double m = 0, n = 0, k = 0, batch = 0, bytes = 0;
  } winograd;
  double seconds = 0;  // for kind fixed
  // For kind fixed: number of kernels in this time that the device's process must launch. For a grouped
  // product of experts: number of experts with a product in it.
  double launches = 0;
  // For kind fixed: how long, beside `seconds`, the device was seen to wait for its process, which issued
  // nothing meanwhile; and how long for data.
  double wait_s = 0, data_wait_s = 0;
  bool routed = false;  // processes rows that a router sent to experts, whose number varies
  double count = 1;
  // Ratio of the model's FLOPs to the computed ones: fused attention skips masked scores, which the model's
  // FLOPs include, and recomputes the others in the backward pass, which they do not include.
  double counted = 1;
  AttentionKernels fused = AttentionKernels::unfused;  // for kind fused_attention
  bool backward = false;                               // for kind fused_attention
  bool wide = false;                                   // for kind gemm: its operands are not cast
  bool loss = false;                                   // softmax and cross-entropy after the model's outputs

  // How devices execute it; the fields below do not affect costs. A memory-bound kernel reads `reads` arrays
  // of equal size and writes `writes` (a mask is a fraction of one), with rows of `width` elements of
  // `element` bytes each; width 0: it has no rows.
  MemoryForm form = MemoryForm::element_wise;
  float reads = 1, writes = 1, element = 0;
  int channels = 0;
  double width = 0;
  Transposed transposed = Transposed::none;  // for kind gemm
  ConvolutionShape convolution;

  double flops() const { return 2 * m * n * k * batch * count; }  // multiply and add count as two
  double rows() const { return width > 0 ? bytes / (reads + writes) / element / width : 0; }
};

}  // namespace rehearse
