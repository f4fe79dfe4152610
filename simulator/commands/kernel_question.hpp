// A kernel by name and sizes, as `rehearse kernel` and tables of kernels ask for it, and what it takes.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "models/kernel.hpp"
#include "simulator/costs/compute.hpp"

namespace rehearse {

enum class KernelPass { forward, backward, backward_input, backward_weight };
inline constexpr std::array<std::string_view, 4> kKernelPassNames = {"forward", "backward", "backward-input",
                                                                     "backward-weight"};

// A kind of kernel that can be asked for: the names of its sizes, in the order of the command line, of which
// those from `required` on may be left out, and of its passes.
struct KernelKind {
  std::string_view name;
  std::vector<std::string_view> sizes;
  std::size_t required = 0;
  std::vector<KernelPass> passes;
};
const std::vector<KernelKind>& kernel_kinds();
const KernelKind& kernel_kind(std::string_view name);  // one of kernel_kinds()

struct KernelQuestion {
  const KernelKind* kind = nullptr;
  std::vector<double> sizes;  // by KernelKind::sizes; the last ones may be missing
  KernelPass pass = KernelPass::forward;
  Precision precision = Precision::bf16;
  AttentionKernels attention = AttentionKernels::unfused;
  bool causal = false;  // attention: the first queries see fewer keys

  std::string shape() const;  // "4096 x 4096 x 512"
};

// The kernels that models run for it (models/). Throws InputError, naming `place`, for sizes that are not
// whole numbers up to kLargestKernelSize, too few or too many of them, filters larger than their padded
// input, passes that the kind does not have, and fused or causal kernels that are no attention.
std::vector<Kernel> kernels_of(const KernelQuestion& question, const std::string& place);

// The name of a kernel for people: "product", "softmax", "norm".
std::string_view name_of(const Kernel& kernel);

// What it takes on a device, kernel by kernel and in all.
struct KernelAnswer {
  std::vector<Kernel> kernels;
  std::vector<KernelTime> times;  // by kernel
  double time_s = 0, flops = 0, bytes = 0;
  Bound bound = Bound::compute;  // of the kernels that together take longest
  // The one that takes longest: its tiles, and the share of the peak that it rests on.
  std::size_t longest = 0;
  double peak_flops =
      0;  // FLOP/s of the device in the precision in which the products run; 0: there are none
  Precision computed_in = Precision::bf16;

  double flops_per_s() const { return flops / time_s; }
  double share_of_peak() const { return peak_flops > 0 ? flops_per_s() / peak_flops : 0; }
  double bytes_per_s() const { return bytes / time_s; }
};
KernelAnswer answer(const KernelQuestion& question, const Device& device, const std::string& place);

// The device of a preset's name, or in a device file. Throws InputError, naming the file or, for a name that
// is neither, `place`.
Device device_named(const std::string& name, const std::string& place);

}  // namespace rehearse
