// Adds the options of `rehearse kernel`.
#include <memory>

#include "simulator/commands/kernel/kernel.hpp"
#include "simulator/commands/predicting/kernel_question.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {

RunSubcommand add_kernel(CLI::App& options) {
  const auto arguments = std::make_shared<KernelArguments>();
  std::vector<std::string> kinds;
  for (const KernelKind& kind : kernel_kinds()) kinds.emplace_back(kind.name);
  options.add_option("KIND", arguments->kind, "gemm, attention, convolution or norm")
      ->required()
      ->check(one_of(kinds));
  options
      .add_option("SIZE", arguments->sizes,
                  "gemm: M N K; attention: BATCH HEADS SEQUENCE HEAD_DIM; convolution: W H C N K S R [PAD_W "
                  "PAD_H [STRIDE_W STRIDE_H]]; norm: ROWS WIDTH")
      ->required();
  options.add_option("--device", arguments->device, "The name of a device, or a device file")
      ->required()
      ->check(shipped_or_file({"topologies/devices"}));
  options.add_option("--precision", arguments->precision, "Precision of training (default: bf16)")
      ->check(one_of(kPrecisionNames));
  options.add_option("--batch", arguments->batch, "gemm: number of products in the batch")
      ->check(CLI::Range(1.0, kLargestKernelSize));
  options.add_option("--pass", arguments->pass, "forward, backward, backward-input or backward-weight")
      ->check(one_of(kKernelPassNames));
  options
      .add_option("--attention", arguments->attention,
                  "attention: unfused, or fused by flash-1, flash-2 or flash-3")
      ->check(one_of(kAttentionKernelsNames));
  options.add_flag("--causal", arguments->causal, "attention: queries see no later keys");
  options.add_flag("--uncertainty", arguments->uncertainty,
                   "Give the time as an interval, from the uncertainty of each constant of the device");
  add_format(options, arguments->format);
  return [arguments](const Streams& streams) {
    run_kernel(*arguments, streams.out);
    return kDone;
  };
}

}  // namespace rehearse
