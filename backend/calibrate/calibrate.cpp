#include "backend/calibrate/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <ostream>

#include "backend/calibrate/bandwidth.hpp"
#include "backend/calibrate/write_profile.hpp"
#include "backend/host/machine.hpp"
#include "models/text/error.hpp"
#include "models/text/output_file.hpp"
#include "models/text/read_text.hpp"
#include "models/text/text.hpp"
#include "simulator/terminal/progress_line.hpp"

namespace rehearse {
namespace {

std::string progress_text(const std::string& what, double done) {
  return fmt::format("{:3.0f} %  {}", 100 * done, what.substr(0, 70));
}

Device base_of(const std::string& name) {
  if (name.empty()) return {};
  if (!name.ends_with(".toml")) return device_preset(name);
  Document document = Document::parse_file(name);
  Section root = document.root();
  return read_device(root);
}

std::string profile_path(const CalibrateArguments& arguments, const std::string& name, const char* of_what) {
  return (std::filesystem::path(arguments.folder) / fmt::format("{}-{}.toml", name, of_what)).string();
}

std::string source_of(const CalibrateArguments& arguments, const Machine& machine,
                      const std::string& device) {
  const std::string on = machine.hardware.starts_with(device) ? "" : device + " on ";
  return fmt::format("{}, {}{}, {}{}{}", machine.date, on, machine.hardware, machine.versions,
                     arguments.versions.empty() ? "" : ", ", arguments.versions) +
         (arguments.command.empty() ? "" : "; `" + arguments.command + "`");
}

void print_residuals(std::ostream& out, const DeviceFit& fit) {
  out << fmt::format("  {:<28}{:>10}{:>22}{:>9}{:>9}{:>9}\n", "fitted", "value", "at the quartiles",
                     "kernels", "median", "worst");
  const auto line = [&](const Residual& r, bool value) {
    out << fmt::format("  {:<28}{:>10}{:>22}{:>9}{:>7.1f} %{:>7.1f} %\n", r.name,
                       value ? fmt::format("{:.3g}", r.value) : "",
                       value ? fmt::format("{:.3g} to {:.3g}", r.low, r.high) : "", r.kernels, 100 * r.median,
                       100 * r.worst);
  };
  for (const Residual& r : fit.residuals) line(r, true);
  if (fit.held_out.kernels > 0) line(fit.held_out, false);
}

void calibrate_device(const CalibrateArguments& arguments, const Machine& machine, const std::string& name,
                      double most_s, ProgressLine& progress, std::ostream& out) {
  Arithmetic& arithmetic = *arguments.arithmetic;
  Device base = base_of(arguments.base_device);
  base.name = name;
  base.title = arithmetic.device_name();
  const DeviceTraits traits = arithmetic.traits();
  if (base.compute_capability == 0) {
    base.compute_units = traits.compute_units;
    base.compute_capability = traits.compute_capability;
  }
  ComputeMeasurements found = measure_compute(
      arithmetic, most_s, arguments.trained,
      [&](const std::string& what, double done) { progress.show(progress_text(what, done)); });
  found.measures.memory_bytes = traits.memory_bytes;
  const DeviceFit fit =
      fit_device(base, found.kernels, found.measures, source_of(arguments, machine, base.title));
  const auto steady = std::count_if(found.kernels.begin(), found.kernels.end(),
                                    [](const KernelSample& s) { return s.time.steady; });
  const std::string path = profile_path(arguments, name, "device");
  std::string heading = fmt::format(
      "{}, measured by `rehearse-run calibrate` on {}. The keys are explained in a100-80.toml.\n"
      "{} of {} kernels have a median known to 2 %.",
      base.title, machine.date, steady, found.kernels.size());
  if (fit.held_out.kernels > 0)
    heading += fmt::format(
        "\n{} products that were not fitted are predicted with an error of {:.1f} % in the "
        "median, {:.1f} % at most.",
        fit.held_out.kernels, 100 * fit.held_out.median, 100 * fit.held_out.worst);
  if (found.issue.repeats > 0)
    heading += fmt::format(
        "\nTimes are of the GPU alone, without the host, which issues an empty kernel in {:.3g} us.",
        1e6 * found.issue.median_s);
  if (found.taken_off > 0.01)
    heading += fmt::format("\nOther programs used the processor {:.0f} % of the time, which is subtracted.",
                           100 * found.taken_off);
  for (const std::string& note : found.notes) heading += "\nNote: " + note + ".";
  write_whole_file(path, device_profile_text(fit.device, heading));
  progress.clear();
  out << fmt::format("{}: {}{}{}\n", path, base.title, arguments.versions.empty() ? "" : ", ",
                     arguments.versions);
  for (std::size_t p = 0; p < kPrecisionNames.size(); ++p)
    if (fit.device.peak_flops[p].value > 0)
      out << fmt::format("  {:<28}{:>10} TFLOP/s\n", fmt::format("{} peak", kPrecisionNames[p]),
                         fmt::format("{:.3g}", fit.device.peak_flops[p].value / 1e12));
  out << fmt::format("  {:<28}{:>10} GB/s\n  {:<28}{:>10} us\n", "memory bandwidth",
                     fmt::format("{:.3g}", fit.device.memory_bandwidth.value / 1e9), "kernel overhead",
                     fmt::format("{:.3g}", 1e6 * fit.device.kernel_overhead_s.value));
  print_residuals(out, fit);
  for (const std::string& note : found.notes) out << "  Note: " << note << ".\n";
  if (found.taken_off > 0.05)
    out << fmt::format(
        "  Other programs used the processor {:.0f} % of the time: measure again when they are done.\n",
        100 * found.taken_off);
}

// Returns the name of a link profile, for example "here-ring-ll" for NCCL's ring algorithm and LL protocol.
std::string name_of_links(const CalibrateArguments& arguments, std::string name) {
  for (const std::string& forced : {arguments.links_algorithm, arguments.links_protocol}) {
    if (!forced.empty()) name += '-';
    for (const char c : forced) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return name;
}

// Replaces bandwidths by efficiencies relative to the links' rate of `link` bytes/s.
void take_efficiencies(LinkCurve& curve, double link) {
  for (SizeRange& range : curve.ranges) {
    const auto share = [&](double bandwidth) { return std::min(1.0, bandwidth / link); };
    range.efficiency = {share(range.bandwidth.value), share(range.bandwidth.low),
                        share(range.bandwidth.high)};
    range.bandwidth = {};
  }
}

// Shapers and caches let short messages exceed the link's rate. Clamps all ranges to that rate and returns
// how many exceeded it.
int keep_to_rate(LinkCurve& curve, double rate) {
  int faster = 0;
  for (SizeRange& range : curve.ranges) {
    if (range.bandwidth.value > rate) ++faster;
    for (double* bandwidth : {&range.bandwidth.value, &range.bandwidth.low, &range.bandwidth.high})
      *bandwidth = std::min(*bandwidth, rate);
  }
  return faster;
}

// Returns the payload rate of the links between ranks in bytes/s; 0: unknown.
double rate_of_links(const CalibrateArguments& arguments, Reach reach) {
  if (arguments.link_gbps > 0) return arguments.link_gbps * 1e9 / 8;
  for (const LinkTrial& trial : arguments.links)
    if (trial.ranks == 0 && trial.reach == reach) return trial.link_payload_bandwidth;
  return 0;
}

double largest(const std::vector<SizedSample>& samples) {
  double bytes = 0;
  for (const SizedSample& sample : samples) bytes = std::max(bytes, sample.bytes);
  return bytes;
}

// Returns a comparison of the fit to the largest and the smallest messages with what is known about their
// links.
std::string compare_with_links(const LinkTrial& trial, const LinkCurve& curve) {
  const double fitted = curve.ranges.back().bandwidth.value, links = trial.link_payload_bandwidth;
  return fmt::format(
      "  Messages {}: the links carry {:.4g} MB/s of payload and delay by {:.3g} us; fitted {:.4g} MB/s "
      "({:+.1f} %) and {:.3g} us.\n",
      kReachNames[static_cast<std::size_t>(trial.reach)], links / 1e6, 1e6 * trial.link_latency_s,
      fitted / 1e6, 100 * (fitted / links - 1), 1e6 * curve.ranges.front().latency_s.value);
}

void calibrate_links(const CalibrateArguments& arguments, const Machine& machine, const std::string& name,
                     double most_s, ProgressLine& progress, std::ostream& out) {
  LinkProfile profile;
  profile.title = arguments.links_title.empty() ? "links of " + machine.name : arguments.links_title;
  profile.date = machine.date;
  profile.hardware =
      arguments.links_hardware + (arguments.links_hardware.empty() ? "" : ", ") + machine.hardware;
  profile.versions = machine.versions + (arguments.versions.empty() ? "" : ", " + arguments.versions);
  profile.command = arguments.command;
  std::string table, compared, bandwidths;
  std::string rows = kBandwidthColumns;
  if (arguments.extend_table && !arguments.table.empty())
    rows = read_text_file(arguments.table, "a table", kMostTextBytes);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  // Messages get more time because they represent everything that is not measured.
  const auto weight = [](const LinkTrial& trial) { return trial.ranks == 0 ? 4.0 : 1.0; };
  double weights_left = 0, most_message = 0, most_step = 0;
  int faster = 0;
  for (const LinkTrial& trial : arguments.links) weights_left += weight(trial);
  for (std::size_t i = 0; i < arguments.links.size(); ++i) {
    const LinkTrial& trial = arguments.links[i];
    // Distributes the time that is left among the remaining trials.
    const double left_s = most_s - std::chrono::duration<double>(Clock::now() - begin).count();
    const double share_s = std::max(0.1, left_s * weight(trial) / weights_left);
    weights_left -= weight(trial);
    MeasuredLink link = measure_link(trial, share_s, [&](const std::string& what, double done) {
      progress.show(
          progress_text(what, (static_cast<double>(i) + done) / static_cast<double>(arguments.links.size())));
    });
    double& most = trial.ranks == 0 ? most_message : most_step;
    most = std::max(most, largest(link.samples));
    if (trial.link_payload_bandwidth > 0) compared += compare_with_links(trial, link.curve);
    const double rate = rate_of_links(arguments, trial.reach);
    if (rate > 0) faster += keep_to_rate(link.curve, rate);
    const std::string what =
        trial.ranks == 0
            ? "message"
            : fmt::format("{} of {}", kCollectiveNames[static_cast<std::size_t>(trial.kind)], trial.ranks);
    for (const SizeRange& r : link.curve.ranges)
      table +=
          fmt::format("  {:<22}{:<15}{:>10}{:>12}{:>13}{:>8.1f} %\n", what,
                      kReachNames[static_cast<std::size_t>(trial.reach)], human_bytes(r.from_bytes),
                      human_time_s(r.latency_s.value), human_bytes(r.bandwidth.value) + "/s", 100 * r.error);
    if (arguments.print_bandwidths) bandwidths += bandwidth_text(link);
    rows += bandwidth_csv(link, arguments.links_algorithm, arguments.links_protocol);
    if (arguments.link_gbps > 0) take_efficiencies(link.curve, arguments.link_gbps * 1e9 / 8);
    profile.curves.push_back(std::move(link.curve));
  }
  const std::string path = profile_path(arguments, name_of_links(arguments, name), "links");
  std::string heading = fmt::format(
      "Measured by `rehearse-run calibrate` on {}. A message takes its range's latency and its "
      "bytes over the bandwidth;\nlow and high are fitted to the quartiles.",
      machine.date);
  std::vector<std::string> notes = arguments.links_notes;
  notes.push_back(fmt::format(
      "Messages of up to {}{} were measured; longer ones are assumed to be as fast",
      human_bytes(most_message),
      most_step > 0 ? fmt::format(", and of up to {} in the steps of collectives,", human_bytes(most_step))
                    : ""));
  if (faster > 0)
    notes.push_back(
        fmt::format("{} of sizes seemed faster than the links, because shapers and caches speed up short "
                    "messages: the profile has the links' rate",
                    faster == 1 ? "One range" : fmt::format("{} ranges", faster)));
  for (const std::string& note : notes) heading += "\n" + note + ".";
  write_whole_file(path, link_profile_text(profile, heading));
  if (!arguments.table.empty()) write_whole_file(arguments.table, rows);
  progress.clear();
  out << fmt::format("{}: {}\n  {:<22}{:<15}{:>10}{:>12}{:>13}{:>10}\n", path, profile.title,
                     "message or step of", "where", "from", "latency", "bandwidth", "median")
      << table << compared << bandwidths;
  for (const std::string& note : notes) out << "  Note: " << note << ".\n";
}

}  // namespace

int run_calibrate(const CalibrateArguments& arguments, std::ostream& out) {
  if (!std::filesystem::is_directory(arguments.folder))
    throw InputError({arguments.folder}, "is not a folder; allowed: a folder to write the profiles to");
  const std::filesystem::path table_folder = std::filesystem::path(arguments.table).parent_path();
  if (!table_folder.empty() && !std::filesystem::is_directory(table_folder))
    throw InputError({"--table"}, fmt::format("\"{}\" is not in a folder that exists; allowed: a file there",
                                              arguments.table));
  const FilesRead files_read;
  base_of(arguments.base_device);  // throws before anything is measured
  const Machine machine = this_machine();
  const std::string name = arguments.name.empty() ? machine.name : arguments.name;
  if (arguments.arithmetic != nullptr)
    refuse_to_overwrite("--out", profile_path(arguments, name, "device"), files_read.paths());
  ProgressLine progress;
  // Link trials are many and quick; kernels are few and slow.
  const bool both = arguments.arithmetic != nullptr && !arguments.links.empty();
  if (arguments.arithmetic != nullptr)
    calibrate_device(arguments, machine, name, both ? 0.6 * arguments.most_s : arguments.most_s, progress,
                     out);
  if (!arguments.links.empty())
    calibrate_links(arguments, machine, name, both ? 0.4 * arguments.most_s : arguments.most_s, progress,
                    out);
  return 0;
}

}  // namespace rehearse
