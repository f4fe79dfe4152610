// Implements `rehearse kernel`: predicts one kernel's time on a device, and what bounds it.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/terminal/output_format.hpp"
#include "simulator/terminal/subcommand.hpp"

namespace rehearse {

struct KernelArguments {
  std::string kind;           // one of kernel_kinds()
  std::vector<double> sizes;  // in the order that the kind defines (kernel_question.hpp)
  double batch = 0;           // gemm: number of products of this shape; 0: not given
  std::string pass = "forward", precision = "bf16";  // of kKernelPassNames, of kPrecisionNames
  std::string attention = "unfused";                 // of kAttentionKernelsNames
  bool causal = false;                               // for attention
  std::string device;                                // name of a preset, or a device file
  bool uncertainty = false;                          // reports the time as an interval
  Format format = Format::text;
};
// Predicts one kernel's time on a device, what limits it, and what the prediction is based on.
void run_kernel(const KernelArguments& arguments, std::ostream& out);

RunSubcommand add_kernel(CLI::App& options);

}  // namespace rehearse
