// Describes a kernel by name and sizes, as `rehearse kernel` and tables of kernels name it, and predicts its
// time.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "models/kernel.hpp"
#include "simulator/costs/compute.hpp"

namespace rehearse {

inline constexpr double kLargestKernelSize = 1e8;

enum class KernelPass { forward, backward, backward_input, backward_weight };
inline constexpr std::array<std::string_view, 4> kKernelPassNames = {"forward", "backward", "backward-input",
                                                                     "backward-weight"};

// A kind of kernel that can be predicted: its passes, and the names of its sizes in the order of the command
// line, of which those from `required` on may be left out.
struct KernelKind {
  std::string_view name;
  std::vector<std::string_view> sizes;
  std::size_t required = 0;
  std::vector<KernelPass> passes;
};
const std::vector<KernelKind>& kernel_kinds();
const KernelKind& kernel_kind(std::string_view name);  // throws InputError if the name is unknown

struct KernelQuestion {
  const KernelKind* kind = nullptr;
  std::vector<double> sizes;  // by KernelKind::sizes; the last ones may be missing
  KernelPass pass = KernelPass::forward;
  Precision precision = Precision::bf16;
  AttentionKernels attention = AttentionKernels::unfused;
  bool causal = false;  // attention: queries see no later keys

  std::string shape() const;  // "4096 x 4096 x 512"
};

// Returns the kernels that models run for the question (models/). Throws InputError, which names `place`, for
// sizes that are not whole numbers up to kLargestKernelSize, too few or too many sizes, filters larger than
// their padded input, different strides along the two sides, passes that the kind does not have, and fused or
// causal kernels other than attention.
std::vector<Kernel> kernels_of(const KernelQuestion& question, const std::string& place);

// Returns a readable name of a kernel: "product", "softmax", "norm".
std::string_view name_of(const Kernel& kernel);

// The predicted time on a device, for each kernel and in total.
struct KernelAnswer {
  std::vector<Kernel> kernels;
  std::vector<KernelTime> times;  // by kernel
  double time_s = 0, flops = 0, bytes = 0;
  Bound bound = Bound::compute;  // of those kernels that take longest together
  // Index of the longest kernel, whose tiles and share of the peak are reported.
  std::size_t longest = 0;
  // FLOP/s of the device in the precision in which the products run; 0: there are none.
  double peak_flops = 0;
  Precision computed_in = Precision::bf16;

  double flops_per_s() const { return flops / time_s; }
  double share_of_peak() const { return peak_flops > 0 ? flops_per_s() / peak_flops : 0; }
  double bytes_per_s() const { return bytes / time_s; }
};
KernelAnswer answer(const KernelQuestion& question, const Device& device, const std::string& place);

// Returns the device of a preset or of a device file. Throws InputError, which names the file or, for a name
// that is neither, `place`.
Device device_named(const std::string& name, const std::string& place);

}  // namespace rehearse
