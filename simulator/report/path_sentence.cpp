// Writes one sentence: what determines the step time, and what would shorten it most.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "simulator/report/format.hpp"
#include "simulator/report/report.hpp"
#include "simulator/trace/causes.hpp"

namespace rehearse {
namespace {

constexpr double kWorthTelling = 0.001;  // of the step
constexpr std::size_t kMost = 3;
constexpr std::array<const char*, kResourceNames.size()> kNames = {
    "compute", "device memory",        "links inside nodes", "network", "latency",
    "servers", "host memory and NVMe", "kernel launches",    "input"};

using Amounts = std::vector<std::pair<std::string, double>>;

// Returns the largest amounts, in descending order, without those too small to mention.
Amounts largest(Amounts amounts, double step_s) {
  std::stable_sort(amounts.begin(), amounts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  amounts.erase(std::find_if(amounts.begin(), amounts.end(),
                             [&](const auto& a) { return a.second < kWorthTelling * step_s; }),
                amounts.end());
  if (amounts.size() > kMost) amounts.resize(kMost);
  return amounts;
}

std::string listed(const Amounts& amounts, double step_s, const std::string& after_first = "") {
  std::string text;
  for (const auto& [name, seconds] : amounts)
    text += fmt::format("{}{}{} {}", text.empty() ? "" : ", ", name, text.empty() ? after_first : "",
                        in_percent(seconds / step_s));
  return text;
}

// More of a resource can cost time (R. L. Graham, Bounds on Multiprocessing Timing Anomalies, 1969).
std::string longer(const Result& result) {
  const double step_s = result.metrics.step_time_s;
  Amounts losses;
  for (const WhatIf& what_if : result.faster)
    if (what_if.step_time_s)
      losses.emplace_back(kNames[static_cast<std::size_t>(what_if.resource)], *what_if.step_time_s - step_s);
  losses = largest(std::move(losses), step_s);
  if (losses.empty()) return "";
  return fmt::format(
      " 10 % faster {}: work that is ready sooner then competes for links or servers with work that the step "
      "waits for.",
      listed(losses, step_s, " would make the step longer by"));
}

// Returns the seconds of a path by kind; what devices compute in any pass is "compute".
std::map<std::string, double> compute_and_others(const std::vector<PathSegment>& path, const Trace& trace) {
  std::map<std::string, double> by_kind;
  for (const PathSegment& segment : path) {
    const bool computes = segment.row != kNoRow && trace.op_of(segment.row).kind == OpKind::compute &&
                          segment.kind != "server work" && segment.kind != kLaunches;
    by_kind[computes ? "compute" : segment.kind] += segment.end_s - segment.begin_s;
  }
  return by_kind;
}

}  // namespace

std::vector<std::pair<std::string, double>> path_by_kind(const Result& result) {
  std::vector<std::pair<std::string, double>> kinds = seconds_by_kind(result.path);
  if (result.rounds == nullptr && !result.metrics.checkpoint) return kinds;
  if (result.rounds) {
    const auto shorter = seconds_by_kind(result.rounds->shorter_path);
    const auto whole =
        result.rounds->extended({shorter.begin(), shorter.end()}, {kinds.begin(), kinds.end()});
    kinds.assign(whole.begin(), whole.end());
  }
  if (result.metrics.checkpoint)
    kinds.emplace_back("checkpoint",
                       result.metrics.breakdown.checkpoint_s * result.plan.schedule->optimizer_steps);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return kinds;
}

std::string critical_path_sentence(const Result& result) {
  if (result.path.empty()) return "";
  const double step_s = result.metrics.step_time_s;
  std::map<std::string, double> by_kind = compute_and_others(result.path, result.trace);
  if (result.rounds)
    by_kind = result.rounds->extended(compute_and_others(result.rounds->shorter_path, result.rounds->shorter),
                                      std::move(by_kind));
  for (auto& [kind, seconds] : by_kind) seconds /= result.plan.schedule->optimizer_steps;
  if (result.metrics.checkpoint) by_kind["checkpoint"] += result.metrics.breakdown.checkpoint_s;
  const std::string parts = listed(largest({by_kind.begin(), by_kind.end()}, step_s), step_s);
  Amounts savings;
  bool simulated = true;
  for (const WhatIf& what_if : result.faster) {
    simulated = simulated && what_if.step_time_s;
    savings.emplace_back(kNames[static_cast<std::size_t>(what_if.resource)],
                         what_if.step_time_s ? step_s - *what_if.step_time_s : what_if.path_saved_s);
  }
  savings = largest(std::move(savings), step_s);
  if (savings.empty()) return fmt::format("Critical path: {}.{}", parts, longer(result));
  return fmt::format("Critical path: {}; 10 % faster {}.{}", parts,
                     listed(savings, step_s, simulated ? " would save" : " would save about"),
                     longer(result));
}

}  // namespace rehearse
