// Implements `rehearse kernel`: predicts one kernel's time on a device and reports what the prediction rests
// on.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "models/text/error.hpp"
#include "models/text/si_prefixes.hpp"
#include "models/text/text.hpp"
#include "simulator/commands/kernel/kernel.hpp"
#include "simulator/commands/predicting/kernel_question.hpp"
#include "simulator/commands/predicting/kernel_uncertainty.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/json.hpp"

namespace rehearse {
namespace {

std::string_view text_of(Bound bound) {
  return kBoundNames[static_cast<std::size_t>(bound)];
}

std::string_view text_of(Basis basis) {
  return kBasisNames[static_cast<std::size_t>(basis)];
}

bool has_tiles(const KernelTime& time) {
  return time.product.tile_m > 0;
}

void write_single(const KernelTime& time, std::ostream& out) {
  out << fmt::format("  bound by   {}: arithmetic {}, memory traffic {}, overhead {}\n", text_of(time.bound),
                     human_time_s(time.arithmetic_s), human_time_s(time.memory_s),
                     human_time_s(time.overhead_s));
  if (time.winograd) out << "  algorithm  Winograd's\n";
  if (!has_tiles(time)) return;
  const ProductTime& p = time.product;
  out << fmt::format("  tiles      {} x {}{}, {} waves\n", p.tile_m, p.tile_n,
                     p.split > 1 ? fmt::format(", k split into {} parts", p.split) : "",
                     with_digits(p.waves, 3));
}

void write_several(const KernelAnswer& a, std::ostream& out) {
  out << fmt::format("\n  {:<34}  {:>9}  {:>8}  {:>8}  {}\n", "kernel", "time", "TFLOP/s", "GB/s",
                     "bound by");
  for (std::size_t i = 0; i < a.kernels.size(); ++i) {
    const Kernel& kernel = a.kernels[i];
    const double seconds = a.times[i].seconds;
    out << fmt::format("  {:<34}  {:>9}  {:>8}  {:>8}  {}\n", name_of(kernel), human_time_s(seconds),
                       kernel.flops() > 0 ? with_digits(kernel.flops() / seconds / kTera, 3) : "-",
                       with_digits(kernel.bytes * kernel.count / seconds / kGiga, 3),
                       text_of(a.times[i].bound));
  }
  out << '\n';
}

// A device file that does not state how much of a peak is reached means all of it.
std::string reached(const Sourced& share) {
  return fmt::format("{} of it is reached", share.value > 0 ? share.value : 1);
}

// Returns the constants that determine the longest kernel's time, each with a description.
std::vector<std::pair<std::string, const Sourced*>> constants_of(const KernelAnswer& a, const Device& device,
                                                                 Precision precision) {
  const KernelTime& time = a.times[a.longest];
  const Kernel& kernel = a.kernels[a.longest];
  if (time.bound == Bound::overhead) return {{"overhead of a kernel", &device.kernel_overhead_s}};
  if (time.bound == Bound::memory)
    return {{"memory bandwidth", &device.memory_bandwidth},
            {reached(device.memory_efficiency), &device.memory_efficiency}};
  const Sourced& share = reached_share(device, kernel, precision, time.winograd);
  return {{fmt::format("{} peak", name_of(a.computed_in)),
           &device.peak_flops[static_cast<std::size_t>(a.computed_in)]},
          {reached(share), &share}};
}

using Interval = std::optional<Uncertainty>;  // nullopt: not requested

void write_text(const KernelQuestion& q, const KernelAnswer& a, const Device& device,
                const Interval& interval, std::ostream& out) {
  std::string details;
  if (q.kind->passes.size() > 1)
    details += fmt::format("{}, ", kKernelPassNames[static_cast<std::size_t>(q.pass)]);
  if (q.kind->name == "attention")
    details += fmt::format("{}{}, ", kAttentionKernelsNames[static_cast<std::size_t>(q.attention)],
                           q.causal ? ", causal" : "");
  out << fmt::format(
      "{} {}, {}{}{} on {}\n\n", q.kind->name, q.shape(), details, name_of(q.precision),
      a.computed_in != q.precision ? fmt::format(" (computed in {})", name_of(a.computed_in)) : "",
      device.title);
  out << fmt::format("  time       {}\n", human_time_s(a.time_s));
  if (a.flops > 0)
    out << fmt::format("  rate       {} TFLOP/s, {} of the peak\n", with_digits(a.flops_per_s() / kTera, 3),
                       in_percent(a.share_of_peak()));
  out << fmt::format("  traffic    {}, {} GB/s, {} of the bandwidth\n", human_bytes(a.bytes),
                     with_digits(a.bytes_per_s() / kGiga, 3),
                     in_percent(a.bytes_per_s() / device.memory_bandwidth.value));
  if (a.kernels.size() == 1)
    write_single(a.times.front(), out);
  else
    write_several(a, out);
  for (const auto& [what, number] : constants_of(a, device, q.precision))
    out << fmt::format("  Rests on: {} ({}): {}\n", what, text_of(number->basis), number->source);
  if (interval) out << "  " << uncertainty_sentence(*interval, a.time_s) << '\n';
}

nlohmann::ordered_json to_json(const KernelQuestion& q, const KernelAnswer& a, const Device& device,
                               const Interval& interval) {
  nlohmann::ordered_json json = {{"kind", q.kind->name}};
  for (std::size_t i = 0; i < q.sizes.size(); ++i)
    json["shape"][std::string(q.kind->sizes[i])] = static_cast<long>(q.sizes[i]);
  json["pass"] = kKernelPassNames[static_cast<std::size_t>(q.pass)];
  if (q.kind->name == "attention") {
    json["attention"] = kAttentionKernelsNames[static_cast<std::size_t>(q.attention)];
    json["causal"] = q.causal;
  }
  json["precision"] = name_of(q.precision);
  json["computed_in"] = name_of(a.computed_in);
  json["device"] = device.name;
  json["time_s"] = a.time_s;
  if (interval) json["interval_s"] = {interval->low_s, interval->high_s};
  json["tflops"] = a.flops_per_s() / kTera;
  json["share_of_peak"] = a.share_of_peak();
  json["gb_per_s"] = a.bytes_per_s() / kGiga;
  json["share_of_bandwidth"] = a.bytes_per_s() / device.memory_bandwidth.value;
  json["bound"] = text_of(a.bound);
  json["kernels"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < a.kernels.size(); ++i) {
    const KernelTime& time = a.times[i];
    nlohmann::ordered_json one = {{"name", name_of(a.kernels[i])}, {"time_s", time.seconds},
                                  {"bound", text_of(time.bound)},  {"arithmetic_s", time.arithmetic_s},
                                  {"memory_s", time.memory_s},     {"overhead_s", time.overhead_s}};
    if (time.winograd) one["winograd"] = true;
    if (has_tiles(time)) {
      one["tile"] = {time.product.tile_m, time.product.tile_n};
      one["split"] = time.product.split;
      one["waves"] = time.product.waves;
    }
    json["kernels"].push_back(std::move(one));
  }
  for (const auto& [what, number] : constants_of(a, device, q.precision))
    json["rests_on"].push_back(
        {{"input", what}, {"basis", text_of(number->basis)}, {"source", number->source}});
  if (interval) json["uncertainty"] = to_json(*interval);
  return json;
}

void write_csv(const KernelQuestion& q, const KernelAnswer& a, const Device& device, const Interval& interval,
               std::ostream& out) {
  out << "kind,shape,pass,precision,device,time_s,tflops,share_of_peak,gb_per_s,bound"
      << (interval ? ",time_low_s,time_high_s\n" : "\n")
      << fmt::format("{},{},{},{},{},{},{},{},{},{}", q.kind->name, q.shape(),
                     kKernelPassNames[static_cast<std::size_t>(q.pass)], name_of(q.precision),
                     csv_field(device.name), a.time_s, a.flops_per_s() / kTera, a.share_of_peak(),
                     a.bytes_per_s() / kGiga, text_of(a.bound));
  if (interval) out << fmt::format(",{},{}", interval->low_s, interval->high_s);
  out << '\n';
}

template <typename Enum, std::size_t N>
Enum named(const std::array<std::string_view, N>& names, const std::string& name) {
  return static_cast<Enum>(std::find(names.begin(), names.end(), name) - names.begin());
}

}  // namespace

void run_kernel(const KernelArguments& arguments, std::ostream& out) {
  KernelQuestion q{&kernel_kind(arguments.kind), arguments.sizes,
                   named<KernelPass>(kKernelPassNames, arguments.pass),
                   named<Precision>(kPrecisionNames, arguments.precision)};
  q.attention = named<AttentionKernels>(kAttentionKernelsNames, arguments.attention);
  q.causal = arguments.causal;
  const std::string place = "kernel " + arguments.kind;
  if (arguments.batch > 0) {
    if (q.kind->name != "gemm") throw InputError({place}, "--batch is given; allowed: with gemm only");
    if (q.sizes.size() > 3)
      throw InputError({place}, "--batch is given with a fourth size; allowed: one of the two");
    if (q.sizes.size() == 3) q.sizes.push_back(arguments.batch);
  }
  const Device device = device_named(arguments.device, "--device");
  const KernelAnswer a = answer(q, device, place);
  Interval interval;
  if (arguments.uncertainty) interval = kernel_uncertainty(q, device, place);
  switch (arguments.format) {
    case Format::text:
      write_text(q, a, device, interval, out);
      break;
    case Format::csv:
      write_csv(q, a, device, interval, out);
      break;
    case Format::json:
      out << json_text(to_json(q, a, device, interval), 2) << '\n';
      break;
  }
}

}  // namespace rehearse
