#include "backend/calibrate/write_profile.hpp"

#include <fmt/format.h>

#include "models/text/printable.hpp"
#include "models/text/toml_text.hpp"

namespace rehearse {
namespace {

std::string quoted(const std::string& text) {
  return toml_string(printable(text));  // readers refuse control characters
}

std::string comment(const std::string& heading) {
  std::string out;
  std::size_t begin = 0;
  while (begin < heading.size()) {
    const std::size_t end = std::min(heading.find('\n', begin), heading.size());
    out += "# " + heading.substr(begin, end - begin) + '\n';
    begin = end + 1;
  }
  return out;
}

// Formats with 6 digits; TOML also accepts exponents such as 1e+16.
std::string number(double value) {
  return fmt::format("{:.6g}", value);
}

std::string sourced(const Sourced& n, double unit) {
  return fmt::format("{{value = {}, basis = {}, source = {}}}", number(n.value / unit),
                     quoted(std::string(kBasisNames[static_cast<std::size_t>(n.basis)])), quoted(n.source));
}

std::string spread(const Spread& s, double unit) {
  return fmt::format("{{value = {}, low = {}, high = {}}}", number(s.value / unit), number(s.low / unit),
                     number(s.high / unit));
}

void add_by_precision(std::string& out, const char* table, const ByPrecision& numbers, double unit) {
  bool first = true;
  for (std::size_t p = 0; p < numbers.size(); ++p) {
    if (numbers[p].value <= 0) continue;
    if (first) out += fmt::format("\n[{}]\n", table);
    first = false;
    out += fmt::format("{} = {}\n", kPrecisionNames[p], sourced(numbers[p], unit));
  }
}

}  // namespace

std::string device_profile_text(const Device& device, const std::string& heading) {
  std::string out = comment(heading);
  out += fmt::format("name = {}\ntitle = {}\ncompute_capability = {}\ncompute_units = {}\n\n",
                     quoted(device.name), quoted(device.title), device.compute_capability,
                     static_cast<long>(device.compute_units));
  const auto add = [&](const char* key, const Sourced& n, double unit, bool required = false) {
    if (n.source.empty() || (n.value <= 0 && !required && n.basis == Basis::guess)) return;
    out += fmt::format("{} = {}\n", key, sourced(n, unit));
  };
  add("memory_gib", device.memory_bytes, 1073741824.0, true);
  add("memory_gb_per_s", device.memory_bandwidth, 1e9, true);
  add("gemm_efficiency", device.gemm_efficiency, 1);
  add("gemm_prologue_k", device.gemm_prologue_k, 1);
  add("convolution_efficiency", device.convolution_efficiency, 1);
  add("attention_efficiency", device.attention_efficiency, 1);
  add("memory_efficiency", device.memory_efficiency, 1);
  add("kernel_overhead_us", device.kernel_overhead_s, 1e-6);
  add("optimizer_bytes_per_parameter", device.optimizer_bytes_per_parameter, 1);
  if (device.measured) out += measured_kernels_text(*device.measured);
  add_by_precision(out, "peak_tflops", device.peak_flops, 1e12);
  add_by_precision(out, "gemm_efficiency_at", device.gemm_efficiency_at, 1);
  add_by_precision(out, "convolution_efficiency_at", device.convolution_efficiency_at, 1);
  for (std::size_t i = 0; i < device.fused_attention.size(); ++i) {
    const FusedAttentionShares& shares = device.fused_attention[i];
    if (shares.forward.value <= 0) continue;
    out += fmt::format("\n[fused_attention.{}]\nforward = {}\nbackward = {}\n", kAttentionKernelsNames[i],
                       sourced(shares.forward, 1), sourced(shares.backward, 1));
  }
  return out;
}

std::string link_profile_text(const LinkProfile& profile, const std::string& heading) {
  std::string out = comment(heading);
  const std::pair<const char*, const std::string*> texts[] = {{"title", &profile.title},
                                                              {"date", &profile.date},
                                                              {"hardware", &profile.hardware},
                                                              {"versions", &profile.versions},
                                                              {"command", &profile.command}};
  for (const auto& [key, text] : texts) out += fmt::format("{} = {}\n", key, quoted(*text));
  out +=
      fmt::format("basis = {}\n", quoted(std::string(kBasisNames[static_cast<std::size_t>(profile.basis)])));
  for (const LinkCurve& curve : profile.curves) {
    const std::string where(kReachNames[static_cast<std::size_t>(curve.reach)]);
    if (curve.ranks == 0)
      out += fmt::format("\n[[message]]\nwhere = \"{}\"\nrange = [\n", where);
    else
      out += fmt::format("\n[[collective]]\nkind = \"{}\"\nwhere = \"{}\"\nranks = {}\nrange = [\n",
                         kCollectiveNames[static_cast<std::size_t>(curve.kind)], where, curve.ranks);
    for (const SizeRange& range : curve.ranges) {
      const bool share = range.efficiency.value > 0;
      out += fmt::format(
          "  {{from_bytes = {}, latency_us = {}, {} = {}, error = {}}},\n", number(range.from_bytes),
          spread(range.latency_s, 1e-6), share ? "efficiency" : "gb_per_s",
          share ? spread(range.efficiency, 1) : spread(range.bandwidth, 1e9), number(range.error));
    }
    out += "]\n";
  }
  return out;
}

}  // namespace rehearse
