#include "backend/calibrate/fit_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "simulator/costs/compute.hpp"
#include "simulator/costs/memory.hpp"

namespace rehearse {
namespace {

using Samples = std::vector<const KernelSample*>;
using Time = double Sample::*;

constexpr double kHuber = 0.1;

double huber(double error) {
  const double size = std::abs(error);
  return size <= kHuber ? size * size / 2 : kHuber * (size - kHuber / 2);
}

double loss(const Device& device, const Samples& samples, Time time) {
  double sum = 0;
  for (const KernelSample* s : samples)
    sum += huber(std::log(kernel_time_s(s->kernel, device, s->precision) / (s->time.*time)));
  return sum;
}

// Returns the x in [low, high] that minimizes f: searches a grid, then narrows down its best point by golden
// sections.
double minimum(double low, double high, const std::function<double(double)>& f) {
  constexpr int kGrid = 40;
  double best = low, least = f(low);
  for (int i = 1; i <= kGrid; ++i) {
    const double x = low + (high - low) * i / kGrid, y = f(x);
    if (y >= least) continue;
    least = y;
    best = x;
  }
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double a = std::max(low, best - (high - low) / kGrid), b = std::min(high, best + (high - low) / kGrid);
  double c = b - golden * (b - a), d = a + golden * (b - a), at_c = f(c), at_d = f(d);
  while (b - a > 1e-5 * (high - low)) {
    if (at_c < at_d) {
      b = d;
      d = c;
      at_d = at_c;
      c = b - golden * (b - a);
      at_c = f(c);
    } else {
      a = c;
      c = d;
      at_c = at_d;
      d = a + golden * (b - a);
      at_d = f(d);
    }
  }
  return (a + b) / 2;
}

// Sets `share` to the value between 1/500 and 4 that explains the samples best; searches over its logarithm.
void fit_share(Device& device, double& share, const Samples& samples, Time time) {
  share = std::exp(minimum(std::log(0.002), std::log(4.0), [&](double x) {
    share = std::exp(x);
    return loss(device, samples, time);
  }));
}

// Fits efficiency and prologue of products: the best share for each prologue, and the prologue with the least
// loss.
void fit_products(Device& device, const Samples& samples, Time time) {
  constexpr double kMostPrologue = 4096;
  double& prologue = device.gemm_prologue_k.value;
  // Searches densely near 0: prologue = e^x - 1.
  prologue = std::exp(minimum(0, std::log(kMostPrologue),
                              [&](double x) {
                                prologue = std::exp(x) - 1;
                                fit_share(device, device.gemm_efficiency.value, samples, time);
                                return loss(device, samples, time);
                              })) -
             1;
  if (prologue < 0.05) prologue = 0;
  fit_share(device, device.gemm_efficiency.value, samples, time);
}

Residual residual_of(std::string name, const Device& device, const Samples& samples) {
  Residual r;
  r.name = std::move(name);
  std::vector<double> errors;
  for (const KernelSample* s : samples)
    errors.push_back(std::abs(kernel_time_s(s->kernel, device, s->precision) / s->time.median_s - 1));
  r.kernels = static_cast<int>(errors.size());
  r.median = quantile(errors, 0.5);
  r.worst = quantile(errors, 1);
  return r;
}

// Fits constants and records them, with the values that they would have at the quartiles.
class Fitting {
public:
  Fitting(DeviceFit& fit, const std::string& source) : fit_(fit), source_(source) {}

  void note(Residual r, Sourced& number, double low, double high) {
    r.value = number.value;
    r.low = std::min({number.value, low, high});
    r.high = std::max({number.value, low, high});
    number.basis = Basis::measured;
    number.source = fmt::format(
        "{}; at the quartiles {:.3g} to {:.3g}; {} kernels, off by {:.1f} % in the median, {:.1f} "
        "% at most",
        source_, r.low, r.high, r.kernels, 100 * r.median, 100 * r.worst);
    fit_.residuals.push_back(std::move(r));
  }

  void share(const std::string& name, Sourced Device::*number, const Samples& samples) {
    one_share(name, fit_.device.*number, samples,
              [&](Device& device) -> double& { return (device.*number).value; });
  }

  void one_share(const std::string& name, Sourced& number, const Samples& samples,
                 const std::function<double&(Device&)>& share_of) {
    if (samples.empty()) return;
    std::array<double, 3> values{};
    constexpr std::array<Time, 3> times = {&Sample::low_s, &Sample::high_s, &Sample::median_s};
    for (std::size_t i = 0; i < times.size(); ++i) {
      Device device = fit_.device;
      fit_share(device, share_of(device), samples, times[i]);
      values[i] = share_of(device);
    }
    number.value = values[2];
    note(residual_of(name, fit_.device, samples), number, values[0], values[1]);
  }

  void products(const Samples& samples) {
    Device quick = fit_.device, slow = fit_.device;
    fit_products(quick, samples, &Sample::low_s);
    fit_products(slow, samples, &Sample::high_s);
    fit_products(fit_.device, samples, &Sample::median_s);
    Device& device = fit_.device;
    note(residual_of("gemm_efficiency", device, samples), device.gemm_efficiency, quick.gemm_efficiency.value,
         slow.gemm_efficiency.value);
    note(residual_of("gemm_prologue_k", device, samples), device.gemm_prologue_k, quick.gemm_prologue_k.value,
         slow.gemm_prologue_k.value);
  }

private:
  DeviceFit& fit_;
  const std::string& source_;
};

std::string rates(double amount, const Sample& s, double unit, const char* name) {
  return fmt::format("median of {}, quartiles {:.4g} to {:.4g} {}", s.repeats, amount / s.high_s / unit,
                     amount / s.low_s / unit, name);
}

void take_measures(Device& device, const DeviceMeasures& m, const std::string& source) {
  const auto measured = [&](Sourced& number, double value, const std::string& how) {
    number = {value, Basis::measured, source + "; " + how};
  };
  if (device.memory_bytes.value <= 0 && m.memory_bytes > 0)
    measured(
        device.memory_bytes, m.memory_bytes,
        device.compute_capability > 0 ? "as its driver reports it" : "as the operating system reports it");
  if (device.memory_bandwidth.value <= 0)
    measured(device.memory_bandwidth, m.triad_bytes / m.triad.median_s,
             fmt::format("y += x over {:.3g} MB: {}", m.triad_bytes / 1e6,
                         rates(m.triad_bytes, m.triad, 1e9, "GB/s")));
  if (m.overhead.repeats > 0)
    measured(device.kernel_overhead_s, m.overhead.median_s,
             fmt::format("{} after another: median of {}, quartiles {:.3g} to {:.3g} us",
                         device.compute_capability > 0 ? "one empty kernel" : "one kernel on 64 bytes",
                         m.overhead.repeats, 1e6 * m.overhead.low_s, 1e6 * m.overhead.high_s));
}

double formula_s(const Kernel& kernel, const Device& device, Precision precision) {
  if (kernel.kind != Kernel::Kind::memory || kernel.form != MemoryForm::adam_update)
    return kernel_time_s(kernel, device, precision);
  Work update;
  update.precision = Precision::fp32;
  update.optimizer_bytes = kernel.bytes;
  update.parameters_updated = kernel.bytes / update_bytes(Optimizer::adam, Precision::fp32, Precision::fp32);
  return work_time_s(update, device);
}

// Returns the measured kernels, with or without the held-out ones; null if there are none. `device` has no
// measured kernels, or they are ignored.
std::shared_ptr<const MeasuredKernels> measured_kernels(Device device,
                                                        const std::vector<KernelSample>& kernels,
                                                        bool held_out, const std::string& source) {
  device.measured = nullptr;
  auto listed = std::make_shared<MeasuredKernels>();
  listed->source = source;
  for (const KernelSample& s : kernels) {
    const Kernel::Kind kind = s.kernel.kind;
    const bool of_table =
        kind == Kernel::Kind::gemm || kind == Kernel::Kind::attention || kind == Kernel::Kind::memory;
    if (!of_table || (s.use == KernelSample::Use::held_out && !held_out)) continue;
    MeasuredKernel& row = listed->all.emplace_back();
    row.kernel = s.kernel;
    row.kernel.count = 1;
    row.precision = computed_in(device, kind, s.precision);
    row.seconds = s.time.median_s / s.kernel.count;
    row.formula_s = formula_s(row.kernel, device, s.precision);
  }
  if (listed->all.empty()) return nullptr;
  return listed;
}

// If a peak is not given, sets it to the best measured rate.
void take_peaks(Device& device, const std::vector<KernelSample>& kernels, const std::string& source) {
  for (std::size_t p = 0; p < kPrecisionNames.size(); ++p) {
    Sourced& peak = device.peak_flops[p];
    if (peak.value > 0) continue;
    const KernelSample* best = nullptr;
    const auto rate = [](const KernelSample& s) { return s.kernel.flops() / s.time.median_s; };
    for (const KernelSample& s : kernels)
      if (static_cast<std::size_t>(s.precision) == p && s.kernel.kind == Kernel::Kind::gemm &&
          s.use != KernelSample::Use::held_out && (best == nullptr || rate(s) > rate(*best)))
        best = &s;
    if (best == nullptr) continue;
    peak = {rate(*best), Basis::measured,
            fmt::format("{}; the fastest product, {}: {}", source, best->what,
                        rates(best->kernel.flops(), best->time, 1e12, "TFLOP/s"))};
  }
}

}  // namespace

DeviceFit fit_device(const Device& base, const std::vector<KernelSample>& kernels,
                     const DeviceMeasures& measures, const std::string& source) {
  if (measures.triad.median_s <= 0) throw std::invalid_argument("no triad was measured");
  DeviceFit fit;
  fit.device = base;
  Device& device = fit.device;
  device.measured = nullptr;
  take_measures(device, measures, source);
  take_peaks(device, kernels, source);

  std::array<Samples, kPrecisionNames.size()> products;
  Samples memory, convolutions, attention, held_out;
  for (const KernelSample& s : kernels) {
    if (s.use == KernelSample::Use::held_out) held_out.push_back(&s);
    if (s.use != KernelSample::Use::fitted) continue;
    if (s.kernel.kind == Kernel::Kind::memory) memory.push_back(&s);
    if (s.kernel.kind == Kernel::Kind::convolution) convolutions.push_back(&s);
    if (s.kernel.kind == Kernel::Kind::attention) attention.push_back(&s);
    if (s.kernel.kind == Kernel::Kind::gemm) products[static_cast<std::size_t>(s.precision)].push_back(&s);
  }
  const auto most = static_cast<std::size_t>(
      std::max_element(products.begin(), products.end(),
                       [](const Samples& a, const Samples& b) { return a.size() < b.size(); }) -
      products.begin());
  if (products[most].empty()) throw std::invalid_argument("no products were measured");

  Fitting fitting(fit, source);
  fitting.share("memory_efficiency", &Device::memory_efficiency, memory);
  device.gemm_efficiency_at[most] = {};
  fitting.products(products[most]);
  for (std::size_t p = 0; p < products.size(); ++p)
    if (p != most)
      fitting.one_share(fmt::format("gemm_efficiency_at.{}", kPrecisionNames[p]),
                        device.gemm_efficiency_at[p], products[p],
                        [p](Device& d) -> double& { return d.gemm_efficiency_at[p].value; });
  if (!convolutions.empty()) device.convolution_efficiency_at = {};
  fitting.share("convolution_efficiency", &Device::convolution_efficiency, convolutions);
  fitting.share("attention_efficiency", &Device::attention_efficiency, attention);

  if (measures.adam.median_s > 0 && measures.adam_parameters > 0) {
    // The constant counts the traffic of mixed-precision Adam; other updates are assumed to be proportional.
    const double counted = update_bytes(Optimizer::adam, Precision::fp32, Precision::fp32);
    const double mixed = update_bytes(Optimizer::adam, Precision::bf16, Precision::bf16);
    const double bandwidth = device.memory_bandwidth.value *
                             (device.memory_efficiency.value > 0 ? device.memory_efficiency.value : 1);
    const auto per_parameter = [&](double seconds) {
      return seconds * bandwidth / measures.adam_parameters * mixed / counted;
    };
    const Sample& s = measures.adam;
    device.optimizer_bytes_per_parameter = {
        per_parameter(s.median_s), Basis::measured,
        fmt::format(
            "{}; Adam in fp32 on {:.3g} M parameters: {:.4g} ns each (median of {}, quartiles {:.4g} to "
            "{:.4g}), in bytes of memory time, scaled from fp32's {:g} to mixed precision's {:g}",
            source, measures.adam_parameters / 1e6, 1e9 * s.median_s / measures.adam_parameters, s.repeats,
            1e9 * s.low_s / measures.adam_parameters, 1e9 * s.high_s / measures.adam_parameters, counted,
            mixed)};
  }
  device.measured = measured_kernels(device, kernels, false, source);
  if (!held_out.empty()) fit.held_out = residual_of("held out", device, held_out);
  device.measured = measured_kernels(device, kernels, true, source);
  return fit;
}

}  // namespace rehearse
