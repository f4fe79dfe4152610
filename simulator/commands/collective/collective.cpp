// Implements `rehearse collective`: predicts the table that nccl-tests would print.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "models/text/error.hpp"
#include "simulator/commands/collective/collective.hpp"
#include "simulator/commands/collective/collective_sizes.hpp"
#include "simulator/commands/predicting/collective_time.hpp"
#include "simulator/commands/predicting/collective_uncertainty.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/json.hpp"

namespace rehearse {
namespace {

constexpr double kElement = 4;  // bytes of nccl-tests' default type, float

template <std::size_t N>
std::size_t index_of(const std::array<std::string_view, N>& names, const std::string& name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

int ranks_of(const Cluster& cluster, int devices) {
  const int all = cluster.devices();
  if (devices > all)
    throw InputError({"--devices"}, fmt::format("is {}; allowed: 2 to {}, the devices of {}", devices, all,
                                                cluster.title.empty() ? cluster.name : cluster.title));
  if (all < 2)
    throw InputError({"--nodes"}, fmt::format("{} has one device in all; allowed: enough nodes for at "
                                              "least 2 devices",
                                              cluster.name));
  return devices > 0 ? devices : all;
}

double gigabytes(double bandwidth) {
  return bandwidth / 1e9;
}

// Formats microseconds as nccl-tests does: seven characters, with as many decimals as fit.
std::string microseconds(double seconds) {
  const double us = 1e6 * seconds;
  return us >= 10000 ? fmt::format("{:7.0f}", us)
         : us >= 100 ? fmt::format("{:7.1f}", us)
                     : fmt::format("{:7.2f}", us);
}

// Returns the elements for the table's column `count`: of the buffer, or of each rank's part of it.
double count_of(Exchange kind, double bytes, int ranks) {
  const bool parts =
      kind == Exchange::all_gather || kind == Exchange::reduce_scatter || kind == Exchange::all_to_all;
  return std::floor(bytes / kElement / (parts ? ranks : 1));
}

// Intervals by size; empty: not requested. Their columns come after nccl-tests' out-of-place columns, so that
// those keep their positions.
using Intervals = std::vector<Uncertainty>;

using Alternatives = std::vector<CollectiveAlternative>;

std::string name_of(const CollectiveAlternative& alternative) {
  return fmt::format("{} {}", kAlgorithmNames[static_cast<std::size_t>(alternative.algorithm)],
                     alternative.protocol);
}

// Prints the times of all choices, and marks the one that is assumed.
void write_alternatives(const std::vector<CollectiveTime>& times, const Alternatives& alternatives,
                        std::ostream& out) {
  out << "#\n# What NCCL could choose, in us (*: what it chooses by its own count, which is assumed above)\n";
  out << fmt::format("# {:>10}", "size");
  for (const CollectiveAlternative& one : alternatives)
    out << fmt::format("  {:>{}}", name_of(one), std::max<std::size_t>(8, name_of(one).size()));
  out << '\n';
  for (std::size_t i = 0; i < times.size(); ++i) {
    out << fmt::format("# {:>10.0f}", times[i].bytes);
    for (const CollectiveAlternative& one : alternatives) {
      const bool chosen = one.algorithm == times[i].chosen && one.protocol == times[i].protocol;
      std::string cell = "-";
      if (!std::isnan(one.times_s[i])) {
        cell = microseconds(one.times_s[i]);
        cell = (chosen ? "*" : "") + cell.substr(cell.find_first_not_of(' '));
      }
      out << fmt::format("  {:>{}}", cell, std::max<std::size_t>(8, name_of(one).size()));
    }
    out << '\n';
  }
}

nlohmann::ordered_json alternatives_json(const Alternatives& alternatives, std::size_t size) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const CollectiveAlternative& one : alternatives)
    if (!std::isnan(one.times_s[size]))
      json.push_back({{"algorithm", kAlgorithmNames[static_cast<std::size_t>(one.algorithm)]},
                      {"protocol", one.protocol},
                      {"time_s", one.times_s[size]}});
  return json;
}

// Prints the uncertain constants of the links and the deviation of each of them.
void write_constants(const Intervals& intervals, std::ostream& out) {
  std::vector<std::string> told;
  for (const Uncertainty& interval : intervals)
    for (const Uncertainty::Effect& effect : interval.effects) {
      const std::string text = fmt::format("{} {:.0f} %", effect.constant, 100 * effect.deviation);
      if (std::find(told.begin(), told.end(), text) == told.end()) told.push_back(text);
    }
  out << "# low, high            : nine of ten measurements are expected between them\n";
  if (!told.empty()) out << fmt::format("# Standard deviations  : {}\n", fmt::join(told, ", "));
}

void write_text(Exchange kind, const Cluster& cluster, int ranks, const std::vector<CollectiveTime>& times,
                const Intervals& intervals, std::ostream& out) {
  const bool reduces =
      kind == Exchange::all_reduce || kind == Exchange::reduce_scatter || kind == Exchange::reduce;
  const bool rooted = kind == Exchange::broadcast || kind == Exchange::reduce;
  const std::string name = cluster.title.empty() ? cluster.name : cluster.title;
  out << fmt::format("# {} on {}{}: predicted, in the columns of nccl-tests\n#\n",
                     kExchangeNames[static_cast<std::size_t>(kind)],
                     ranks < cluster.devices() ? fmt::format("the first {} devices of ", ranks) : "", name);
  const auto with_bounds = [&](const std::string& low, const std::string& high) {
    return intervals.empty() ? std::string() : fmt::format("  {:>7}  {:>7}", low, high);
  };
  out << fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}{}\n", "size", "count",
                     "type", "redop", "root", "time", "algbw", "busbw", with_bounds("low", "high"));
  out << fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}{}\n", "(B)", "(elements)",
                     "", "", "", "(us)", "(GB/s)", "(GB/s)", with_bounds("(us)", "(us)"));
  double sum = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const CollectiveTime& time = times[i];
    const double algbw = gigabytes(algorithm_bandwidth(time)), busbw = algbw * bus_factor(kind, ranks);
    sum += busbw;
    std::string how(time.algorithm);
    if (!time.protocol.empty()) how += fmt::format("{}{}", how.empty() ? "" : " ", time.protocol);
    out << fmt::format("{:>12.0f}  {:>12.0f}  {:>8}  {:>6}  {:>6}  {}  {:>6.2f}  {:>6.2f}{}  {}\n",
                       time.bytes, count_of(kind, time.bytes, ranks), "float", reduces ? "sum" : "none",
                       rooted ? "0" : "-1", microseconds(time.time_s), algbw, busbw,
                       intervals.empty()
                           ? ""
                           : with_bounds(microseconds(intervals[i].low_s), microseconds(intervals[i].high_s)),
                       how);
  }
  out << fmt::format("# Avg bus bandwidth    : {:g}\n", sum / static_cast<double>(times.size()));
  if (!intervals.empty()) write_constants(intervals, out);
}

void write_json(Exchange kind, int ranks, const std::vector<CollectiveTime>& times,
                const Intervals& intervals, const Alternatives* alternatives, std::ostream& out) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < times.size(); ++i) {
    const CollectiveTime& time = times[i];
    const double algbw = gigabytes(algorithm_bandwidth(time));
    nlohmann::ordered_json one = {{"kind", kExchangeNames[static_cast<std::size_t>(kind)]},
                                  {"bytes", static_cast<std::int64_t>(time.bytes)},
                                  {"time_s", time.time_s}};
    if (!intervals.empty()) one["interval_s"] = {intervals[i].low_s, intervals[i].high_s};
    one["algbw_gb_per_s"] = algbw;
    one["busbw_gb_per_s"] = algbw * bus_factor(kind, ranks);
    one["algorithm"] = time.algorithm;
    one["protocol"] = time.protocol;
    if (alternatives != nullptr) one["alternatives"] = alternatives_json(*alternatives, i);
    if (!intervals.empty()) one["uncertainty"] = to_json(intervals[i]);
    json.push_back(std::move(one));
  }
  out << json_text(json, 2) << '\n';
}

void write_csv(Exchange kind, int ranks, const std::vector<CollectiveTime>& times, const Intervals& intervals,
               const Alternatives& alternatives, std::ostream& out) {
  out << "kind,devices,bytes,time_s,algbw_gb_per_s,busbw_gb_per_s,algorithm,protocol"
      << (intervals.empty() ? "" : ",time_low_s,time_high_s");
  for (const CollectiveAlternative& one : alternatives) out << fmt::format(",{} time_s", name_of(one));
  out << '\n';
  for (std::size_t i = 0; i < times.size(); ++i) {
    const CollectiveTime& time = times[i];
    const double algbw = gigabytes(algorithm_bandwidth(time));
    out << fmt::format("{},{},{:.0f},{},{},{},{},{}", kExchangeNames[static_cast<std::size_t>(kind)], ranks,
                       time.bytes, time.time_s, algbw, algbw * bus_factor(kind, ranks), time.algorithm,
                       time.protocol);
    if (!intervals.empty()) out << fmt::format(",{},{}", intervals[i].low_s, intervals[i].high_s);
    for (const CollectiveAlternative& one : alternatives)
      out << (std::isnan(one.times_s[i]) ? "," : fmt::format(",{}", one.times_s[i]));
    out << '\n';
  }
}

}  // namespace

void run_collective(const CollectiveArguments& arguments, std::ostream& out) {
  const auto kind = static_cast<Exchange>(index_of(kExchangeNames, arguments.kind));
  const auto algorithm = static_cast<Algorithm>(index_of(kAlgorithmNames, arguments.algorithm));
  if (kind != Exchange::all_reduce && algorithm != Algorithm::automatic && algorithm != Algorithm::ring)
    throw InputError({"--algorithm"}, fmt::format("is \"{}\" for {}; allowed: auto, ring",
                                                  arguments.algorithm, arguments.kind));
  const std::vector<double> sizes = parse_collective_sizes(arguments.bytes);
  const auto cluster = collective_cluster({arguments.cluster, arguments.nodes, arguments.devices,
                                           arguments.devices_per_node, arguments.overrides});
  const int ranks = ranks_of(*cluster, arguments.devices);
  const auto software = static_cast<Protocol::Software>(index_of(kSoftwareNames, arguments.software));
  const std::vector<CollectiveTime> times =
      collective_times(kind, cluster, ranks, sizes, algorithm, software);
  Intervals intervals;
  if (arguments.uncertainty) intervals = collective_uncertainties(kind, cluster, ranks, times, software);
  Alternatives alternatives;
  if (arguments.alternatives) alternatives = collective_alternatives(kind, *cluster, ranks, times, software);
  switch (arguments.format) {
    case Format::text:
      write_text(kind, *cluster, ranks, times, intervals, out);
      if (!alternatives.empty()) write_alternatives(times, alternatives, out);
      break;
    case Format::json:
      write_json(kind, ranks, times, intervals, arguments.alternatives ? &alternatives : nullptr, out);
      break;
    case Format::csv:
      write_csv(kind, ranks, times, intervals, alternatives, out);
      break;
  }
}

}  // namespace rehearse
