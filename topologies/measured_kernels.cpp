#include "topologies/measured_kernels.hpp"

#include <fmt/format.h>

#include "models/text/printable.hpp"
#include "models/text/si_prefixes.hpp"
#include "models/text/toml_text.hpp"

namespace rehearse {
namespace {

using Kind = Kernel::Kind;

constexpr std::array<std::string_view, 3> kKindNames = {"gemm", "attention", "memory"};
constexpr std::array<Kind, 3> kKinds = {Kind::gemm, Kind::attention, Kind::memory};

constexpr Range kSize{1, 1e12}, kMicroseconds{0, 1e12, true};

MeasuredKernel read_row(Section& row) {
  MeasuredKernel measured;
  Kernel& kernel = measured.kernel;
  kernel.kind = kKinds[row.choice("kind", kKindNames)];
  measured.precision = static_cast<Precision>(row.choice("precision", kPrecisionNames, 0));
  if (kernel.kind == Kind::memory) {
    kernel.form = static_cast<MemoryForm>(row.choice("form", kMemoryFormNames));
    kernel.bytes = row.number("bytes", {1, 1e15});
    kernel.width = row.number("width", {0, 1e12}, 0);
    kernel.reads = static_cast<float>(row.number("reads", {0, 1000}, 1));
    kernel.writes = static_cast<float>(row.number("writes", {0, 1000}, 1));
  } else {
    kernel.m = row.number("m", kSize);
    kernel.n = row.number("n", kSize);
    kernel.k = row.number("k", kSize);
    kernel.batch = row.number("batch", kSize, 1);
    kernel.transposed = static_cast<Transposed>(row.choice("transposed", kTransposedNames, 0));
  }
  measured.seconds = kMicro * row.number("us", kMicroseconds);
  measured.formula_s = kMicro * row.number("formula_us", kMicroseconds);
  row.finish();
  return measured;
}

std::string row_text(const MeasuredKernel& measured) {
  const Kernel& kernel = measured.kernel;
  std::string text;
  if (kernel.kind == Kind::memory) {
    text = fmt::format("form = \"{}\", bytes = {:.8g}",
                       kMemoryFormNames[static_cast<std::size_t>(kernel.form)], kernel.bytes);
    if (kernel.width > 0) text += fmt::format(", width = {:.8g}", kernel.width);
    text += fmt::format(", reads = {:g}, writes = {:g}", kernel.reads, kernel.writes);
  } else {
    text = fmt::format("m = {:.8g}, n = {:.8g}, k = {:.8g}", kernel.m, kernel.n, kernel.k);
    if (kernel.batch != 1) text += fmt::format(", batch = {:.8g}", kernel.batch);
    if (kernel.transposed != Transposed::none)
      text +=
          fmt::format(", transposed = \"{}\"", kTransposedNames[static_cast<std::size_t>(kernel.transposed)]);
  }
  std::string_view kind = kKindNames.front();
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    if (kKinds[i] == kernel.kind) kind = kKindNames[i];
  if (measured.precision != Precision::fp32)
    text += fmt::format(", precision = \"{}\"", name_of(measured.precision));
  return fmt::format("  {{kind = \"{}\", {}, us = {:.4g}, formula_us = {:.4g}}},\n", kind, text,
                     1e6 * measured.seconds, 1e6 * measured.formula_s);
}

}  // namespace

std::shared_ptr<const MeasuredKernels> read_measured_kernels(Section& device) {
  auto kernels = std::make_shared<MeasuredKernels>();
  for (Section& row : device.sections("measured_kernels")) kernels->all.push_back(read_row(row));
  kernels->source = device.text("measured_kernels_source", "");
  if (kernels->all.empty()) return nullptr;
  if (kernels->source.empty())
    device.refuse("measured_kernels_source", "missing beside measured_kernels", "a text: what measured them");
  return kernels;
}

std::string measured_kernels_text(const MeasuredKernels& kernels) {
  if (kernels.all.empty()) return "";
  std::string text = fmt::format("measured_kernels_source = {}\nmeasured_kernels = [\n",
                                 toml_string(printable(kernels.source)));
  for (const MeasuredKernel& kernel : kernels.all) text += row_text(kernel);
  return text + "]\n";
}

}  // namespace rehearse
