#include "topologies/device.hpp"

#include <fmt/format.h>

#include "models/text/printable.hpp"
#include "topologies/power.hpp"

namespace rehearse {

double Sourced::deviation() const {
  return uncertainty >= 0 ? uncertainty : kDeviationOfBasis[static_cast<std::size_t>(basis)];
}

Sourced read_sourced(Section& section, std::string_view key, Range range, double unit, bool required) {
  Sourced number;
  if (section.has(key) && !section.is_table(key)) {
    number.value = section.number(key, range) * unit;
    number.source = "a plain number, without a source";
    return number;
  }
  Section table = section.section(key);  // even if it is absent, so that "did you mean" knows it
  if (!table.present()) {
    if (required) section.refuse(key, "missing", "a table {value, basis, source}");
    number.source = "not given";
    return number;
  }
  number.value = table.number("value", range) * unit;
  number.basis = static_cast<Basis>(table.choice("basis", kBasisNames));
  number.source = table.text("source");
  number.uncertainty = table.number("uncertainty", {0, 2}, -1);
  if (number.source.empty()) table.refuse("source", "an empty text", "where the value comes from");
  table.finish();
  return number;
}

namespace {

void read_by_precision(Section& section, std::string_view key, Range range, double unit,
                       ByPrecision& numbers) {
  Section table = section.section(key);
  for (std::size_t i = 0; i < kPrecisionNames.size(); ++i)
    if (table.has(kPrecisionNames[i])) numbers[i] = read_sourced(table, kPrecisionNames[i], range, unit);
  table.finish();
}

// Reads [fused_attention.flash-2] forward = {...}, backward = {...}.
void read_fused_attention(Section& section, Range range, Device& device) {
  Section table = section.section("fused_attention");
  for (std::size_t i = 1; i < kAttentionKernelsNames.size(); ++i) {
    Section shares = table.section(kAttentionKernelsNames[i]);
    if (!shares.present()) continue;
    device.fused_attention[i] = {read_sourced(shares, "forward", range, 1, true),
                                 read_sourced(shares, "backward", range, 1, true)};
    shares.finish();
  }
  table.finish();
}

const Sourced& one_of(const ByPrecision& exceptions, Precision p, const Sourced& rule) {
  const Sourced& exception = exceptions[static_cast<std::size_t>(p)];
  return exception.value > 0 ? exception : rule;
}

}  // namespace

Device::Device() = default;
Device::Device(const Device&) = default;
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(const Device&) = default;
Device& Device::operator=(Device&&) noexcept = default;
Device::~Device() = default;

ProductConstants::ProductConstants()
    : small_tiles{1, Basis::published,
                  "fitted on training tables of A100s and on DeepBench's fp32 products on a V100; for all "
                  "other DeepBench shapes with a smallest side from 128 to 1,023, on P100 and V100, errors "
                  "are 10 %",
                  0.10},
      // stream-K and split-k kernels fill the rest of a wave
      wave_quantisation{0.6, Basis::published,
                        "fits on training tables of A100s leave it between 0.45 and 0.75 at a "
                        "gemm_efficiency of 0.78",
                        0.15} {}

bool Device::has(AttentionKernels kernels) const {
  return kernels == AttentionKernels::unfused ||
         fused_attention[static_cast<std::size_t>(kernels)].forward.value > 0;
}

const Sourced& Device::gemm_efficiency_of(Precision p) const {
  return one_of(gemm_efficiency_at, p, gemm_efficiency);
}

const Sourced& Device::convolution_efficiency_of(Precision p) const {
  return one_of(convolution_efficiency_at, p, convolution_efficiency);
}

Device read_device(Section& section) {
  // Convolutions can exceed the peak, because Winograd's algorithm does fewer multiplications than the
  // formula counts.
  constexpr Range kShare{0, 4, true};
  Device device;
  device.name = section.text("name", title_of_file(section.place().file));
  device.title = section.text("title", device.name);
  device.compute_capability = static_cast<int>(section.integer("compute_capability", 0, 1000, 0));
  device.compute_units = static_cast<double>(section.integer("compute_units", 0, 1'000'000, 0));
  device.peer_to_peer = section.boolean("peer_to_peer", true);
  if (!section.section("peak_tflops").has("fp32"))
    section.section("peak_tflops").refuse("fp32", "missing", "a table {value, basis, source}");
  read_by_precision(section, "peak_tflops", {0, 1e9, true}, 1e12, device.peak_flops);
  device.memory_bytes = read_sourced(section, "memory_gib", {0, 1e6, true}, 1073741824.0, true);
  device.memory_bandwidth = read_sourced(section, "memory_gb_per_s", {0, 1e9, true}, 1e9, true);
  device.gemm_efficiency = read_sourced(section, "gemm_efficiency", kShare, 1);
  read_by_precision(section, "gemm_efficiency_at", kShare, 1, device.gemm_efficiency_at);
  device.gemm_prologue_k = read_sourced(section, "gemm_prologue_k", {0, 1e5}, 1);
  device.convolution_efficiency = read_sourced(section, "convolution_efficiency", kShare, 1);
  read_by_precision(section, "convolution_efficiency_at", kShare, 1, device.convolution_efficiency_at);
  device.attention_efficiency = read_sourced(section, "attention_efficiency", kShare, 1);
  read_fused_attention(section, kFraction, device);
  device.memory_efficiency = read_sourced(section, "memory_efficiency", kShare, 1);
  device.kernel_overhead_s = read_sourced(section, "kernel_overhead_us", {0, 1e6}, 1e-6);
  device.optimizer_bytes_per_parameter = read_sourced(section, "optimizer_bytes_per_parameter", {0, 1e4}, 1);
  device.measured = read_measured_kernels(section);
  read_use_and_idle(section, "power_w", "idle_power_w", device.power_w, device.idle_power_w);
  section.finish();
  return device;
}

Device device_preset(const std::string& name) {
  const std::string path = preset_path("topologies/devices", name);
  if (path.empty())
    throw InputError({}, fmt::format("there is no device \"{}\"; allowed: {}", name,
                                     allowed_presets("topologies/devices")));
  Document document = Document::parse_file(path);
  Section root = document.root();
  return read_device(root);
}

std::vector<std::string> device_names() {
  return preset_names("topologies/devices");
}

}  // namespace rehearse
