#include "simulator/commands/predicting/kernel_question.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "models/kernels.hpp"
#include "models/text/document.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

// Returns the minimum of a size, which must be a whole number. Paddings may be 0.
double least(std::string_view size) {
  return size.starts_with("pad") ? 0 : 1;
}

void check(const KernelQuestion& q, const std::string& place) {
  const KernelKind& kind = *q.kind;
  if (q.sizes.size() < kind.required || q.sizes.size() > kind.sizes.size()) {
    const std::string several = kind.required == kind.sizes.size()
                                    ? fmt::format("{}", kind.required)
                                    : fmt::format("{} to {}", kind.required, kind.sizes.size());
    throw InputError({place}, fmt::format("{} has {} sizes; allowed: {}, {}", kind.name, q.sizes.size(),
                                          several, fmt::join(kind.sizes, " ")));
  }
  for (std::size_t i = 0; i < q.sizes.size(); ++i) {
    const double size = q.sizes[i];
    if (!(size >= least(kind.sizes[i]) && size <= kLargestKernelSize && size == std::floor(size)))
      throw InputError({place}, fmt::format("{} is {}; allowed: a whole number from {} to {:.0f}",
                                            kind.sizes[i], size, least(kind.sizes[i]), kLargestKernelSize));
  }
  if (kind.name != "attention" && q.causal)
    throw InputError({place}, fmt::format("{} is causal; allowed: attention", kind.name));
  if (kind.name != "attention" && q.attention != AttentionKernels::unfused)
    throw InputError({place}, fmt::format("{} is computed by {}; allowed: attention", kind.name,
                                          kAttentionKernelsNames[static_cast<std::size_t>(q.attention)]));
  if (std::find(kind.passes.begin(), kind.passes.end(), q.pass) == kind.passes.end()) {
    std::vector<std::string_view> allowed;
    for (const KernelPass pass : kind.passes)
      allowed.push_back(kKernelPassNames[static_cast<std::size_t>(pass)]);
    throw InputError(
        {place}, fmt::format("the pass of {} is {}; allowed: {}", kind.name,
                             kKernelPassNames[static_cast<std::size_t>(q.pass)], fmt::join(allowed, ", ")));
  }
}

std::vector<Kernel> attention(const KernelQuestion& q) {
  Transformer shape;
  shape.layers = 1;
  shape.heads = q.sizes[1];
  shape.sequence_length = q.sizes[2];
  shape.head_dim = q.sizes[3];
  shape.hidden = shape.heads * shape.head_dim;
  shape.vocabulary = 1;
  shape.dropout = false;
  shape.causal = q.causal;
  PassShape pass;
  pass.micro_batch = q.sizes[0];
  pass.precision = q.precision;
  pass.attention = q.attention;
  for (const Layer& layer : transformer_layers(shape, pass))
    for (const Segment& segment : layer.segments)
      if (segment.kind == SegmentKind::attention)
        return q.pass == KernelPass::forward ? segment.cost.forward : segment.cost.backward_input;
  return {};
}

std::vector<Kernel> convolution(const KernelQuestion& q, const std::string& place) {
  const auto size = [&](std::size_t i) { return static_cast<int>(q.sizes[i]); };
  ConvolutionShape shape;
  shape.width = size(0);
  shape.height = size(1);
  shape.in_channels = size(2);
  shape.samples = q.sizes[3];
  shape.out_channels = size(4);
  shape.kernel_width = size(5);
  shape.kernel_height = size(6);
  shape.padding_width = q.sizes.size() > 7 ? size(7) : 0;
  shape.padding_height = q.sizes.size() > 8 ? size(8) : shape.padding_width;
  shape.stride = q.sizes.size() > 9 ? size(9) : 1;
  if (q.sizes.size() > 10 && size(10) != shape.stride)
    throw InputError(
        {place}, fmt::format("stride_h is {} with stride_w = {}; allowed: the same stride in both dimensions",
                             size(10), shape.stride));
  const auto refuse_filter = [&](const char* side, int filter, int padded) {
    if (filter > padded)
      throw InputError({place}, fmt::format("the filter's {} is {}; allowed: at most that of the padded "
                                            "input, {}",
                                            side, filter, padded));
  };
  refuse_filter("width", shape.kernel_width, shape.width + 2 * shape.padding_width);
  refuse_filter("height", shape.kernel_height, shape.height + 2 * shape.padding_height);
  shape.pass = q.pass == KernelPass::backward_input    ? ConvolutionShape::Pass::backward_input
               : q.pass == KernelPass::backward_weight ? ConvolutionShape::Pass::backward_weight
                                                       : ConvolutionShape::Pass::forward;
  return {convolution_kernel(shape, element_bytes(q.precision))};
}

std::vector<Kernel> norm(const KernelQuestion& q) {
  const double element = element_bytes(q.precision), rows = q.sizes[0], width = q.sizes[1];
  const RowArrays arrays{rows * width * element, width, element};
  if (q.pass == KernelPass::forward) return {norm_forward(arrays)};
  return {norm_backward(arrays), norm_parameters(arrays)};
}

}  // namespace

const std::vector<KernelKind>& kernel_kinds() {
  using enum KernelPass;
  static const std::vector<KernelKind> kinds = {
      {"gemm", {"m", "n", "k", "batch"}, 3, {forward}},
      {"attention", {"batch", "heads", "sequence", "head_dim"}, 4, {forward, backward}},
      {"convolution",
       {"w", "h", "c", "n", "k", "s", "r", "pad_w", "pad_h", "stride_w", "stride_h"},
       7,
       {forward, backward_input, backward_weight}},
      {"norm", {"rows", "width"}, 2, {forward, backward}},
  };
  return kinds;
}

const KernelKind& kernel_kind(std::string_view name) {
  for (const KernelKind& kind : kernel_kinds())
    if (kind.name == name) return kind;
  throw InputError({std::string(name)},
                   "there is no such kernel; allowed: gemm, attention, convolution, norm");
}

std::string KernelQuestion::shape() const {
  std::vector<std::string> texts;
  for (const double size : sizes) texts.push_back(fmt::format("{}", size));
  return fmt::format("{}", fmt::join(texts, " x "));
}

std::vector<Kernel> kernels_of(const KernelQuestion& q, const std::string& place) {
  check(q, place);
  if (q.kind->name == "attention") return attention(q);
  if (q.kind->name == "convolution") return convolution(q, place);
  if (q.kind->name == "norm") return norm(q);
  const double batch = q.sizes.size() > 3 ? q.sizes[3] : 1;
  return {product(Kernel::Kind::gemm, q.sizes[0], q.sizes[1], q.sizes[2], element_bytes(q.precision), batch)};
}

std::string_view name_of(const Kernel& kernel) {
  switch (kernel.kind) {
    case Kernel::Kind::gemm:
    case Kernel::Kind::attention:
      return "product";
    case Kernel::Kind::fused_attention:
      return kernel.backward ? "fused attention, backward" : "fused attention";
    case Kernel::Kind::convolution:
      return "convolution";
    case Kernel::Kind::fixed:
      return "measured";
    case Kernel::Kind::memory:
      break;
  }
  switch (kernel.form) {
    case MemoryForm::norm_forward:
      return "norm";
    case MemoryForm::norm_backward:
      return "norm, gradient of its input";
    case MemoryForm::norm_parameters:
      return "norm, gradient of its parameters";
    case MemoryForm::softmax_forward:
      return "softmax";
    case MemoryForm::softmax_backward:
      return "softmax, backward";
    default:
      return "copy";
  }
}

KernelAnswer answer(const KernelQuestion& q, const Device& device, const std::string& place) {
  KernelAnswer a;
  if (!device.has(q.attention)) {
    std::vector<std::string_view> allowed;
    for (std::size_t i = 0; i < kAttentionKernelsNames.size(); ++i)
      if (device.has(static_cast<AttentionKernels>(i))) allowed.push_back(kAttentionKernelsNames[i]);
    throw InputError({place}, fmt::format("attention by {}, for which {} has no efficiency; allowed: {}",
                                          kAttentionKernelsNames[static_cast<std::size_t>(q.attention)],
                                          device.name, fmt::join(allowed, ", ")));
  }
  a.kernels = kernels_of(q, place);
  std::array<double, kBoundNames.size()> by_bound{};
  for (const Kernel& kernel : a.kernels) {
    const KernelTime& time = a.times.emplace_back(kernel_time(kernel, device, q.precision));
    a.time_s += time.seconds;
    a.flops += kernel.flops();
    a.bytes += kernel.bytes * kernel.count;
    by_bound[static_cast<std::size_t>(time.bound)] += time.seconds;
    if (time.seconds > a.times[a.longest].seconds) a.longest = a.times.size() - 1;
    if (kernel.flops() > 0) {
      a.computed_in = computed_in(device, kernel.kind, q.precision);
      a.peak_flops = device.peak_flops[static_cast<std::size_t>(a.computed_in)].value;
    }
  }
  if (a.flops == 0) a.computed_in = stored_precision(q.precision);
  a.bound = static_cast<Bound>(std::max_element(by_bound.begin(), by_bound.end()) - by_bound.begin());
  return a;
}

Device device_named(const std::string& name, const std::string& place) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(name, ignored)) {
    try {
      return device_preset(name);
    } catch (const InputError& error) {
      if (!error.place().file.empty()) throw;
      throw InputError({place}, error.what());
    }
  }
  Document document = Document::parse_file(name);
  Section root = document.root();
  return read_device(root);
}

}  // namespace rehearse
