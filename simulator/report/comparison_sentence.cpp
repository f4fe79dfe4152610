// Explains why one result takes longer than another. Differences are taken from the results (seconds of the
// breakdown, bytes on links, FLOPs of devices), not from the keys, so that a key without effect is never
// blamed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/text/text.hpp"
#include "simulator/report/comparison.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/pipeline_estimate.hpp"
#include "simulator/schedule/communication.hpp"
#include "simulator/trace/causes.hpp"
#include "simulator/trace/rows.hpp"
#include "simulator/trace/step_traffic.hpp"

namespace rehearse {
namespace {

constexpr double kSame = 0.005;       // of the base's step: a part that differs by less is equal
constexpr double kMatters = 0.05;     // of the total difference: a smaller part is omitted
constexpr double kNoticeable = 0.02;  // ratios closer to 1 are not a cause

std::string times(double ratio) {
  return with_digits(ratio, ratio < 10 ? 3 : 2) + " x";
}

// Facts about a result, per step or per sample.
struct Facts {
  const Result& result;
  double scale = 1;  // samples to divide by
  struct {
    std::string name;
    double bytes = 0, bandwidth = 0, busy_s = 0;
  } link;                                 // the busiest
  std::map<std::string, double> by_pass;  // compute seconds of a mean device
  std::map<std::string, double> on_path;  // seconds of the critical path
  double slowest_s = 0;                   // compute seconds of the worker that computes longest
  double flops = 0;                       // of a device

  Facts(const Result& r, double samples) : result(r), scale(samples) {
    const Metrics& m = r.metrics;
    const double share = 1 / (scale * r.plan.schedule->optimizer_steps);  // of the trace's step
    for (const LinkLoad& load : traffic_of(r).links) {
      const double bandwidth = r.scenario.cluster->bandwidth(load.link), bytes = load.bytes / scale;
      if (bytes / bandwidth <= link.busy_s) continue;
      link = {r.scenario.cluster->link_name(load.link), bytes, bandwidth, bytes / bandwidth};
    }
    Computed computed = computed_in(r.trace, m, share);
    if (r.rounds) {
      const Computed shorter = computed_in(r.rounds->shorter, m, share);
      computed = {r.rounds->extended(shorter.by_class, computed.by_class),
                  r.rounds->extended(shorter.by_pass, computed.by_pass)};
    }
    by_pass = std::move(computed.by_pass);
    for (const auto& [rank_class, seconds] : computed.by_class) slowest_s = std::max(slowest_s, seconds);
    for (const auto& [kind, seconds] : path_by_kind(r)) on_path[kind] = seconds * share;
    if (m.mfu > 0) flops = m.model_tflops_per_device * 1e12 * m.hfu / m.mfu * m.step_time_s / scale;
  }

  double pass(const std::string& name) const { return value(by_pass, name); }
  double path(const std::string& kind) const { return value(on_path, kind); }
  bool servers() const {
    const Schedule& schedule = *result.plan.schedule;
    return process_ranks(schedule) > schedule.roles.front().size();
  }
  std::string idle_slots() const {
    const StrategyChoice& strategy = result.scenario.strategy;
    const Slots slots =
        slots_of(strategy.schedule, strategy.pipeline, result.scenario.microbatches, strategy.virtual_stages);
    return fmt::format("{} of {}", slots.idle, slots.all);
  }
  // Returns "1f1b", for example: the schedule in the file, or the default.
  std::string schedule() const {
    for (const auto& [key, value] : result.scenario.settings)
      if (key == "strategy.schedule") return value;
    return "1f1b";
  }
  // Returns "node3.gpu1 runs at 50.0 % of its speed", for example; empty if no device is slow.
  std::string slow_device() const {
    const Cluster& cluster = *result.scenario.cluster;
    for (const int endpoint : result.plan.endpoints)
      if (cluster.device_factor(endpoint) < 1)
        return fmt::format("{} runs at {} of its speed", cluster.endpoint_name(endpoint),
                           in_percent(cluster.device_factor(endpoint)));
    return "";
  }

private:
  // Compute seconds of the last step in a trace: of each class of workers, and of a mean device.
  struct Computed {
    std::map<std::string, double> by_class, by_pass;
  };
  static Computed computed_in(const Trace& trace, const Metrics& m, double share) {
    Computed computed;
    const int step = last_step_number(trace, 0);
    for (std::size_t row = 0; row < trace.spans.size(); ++row) {
      const Op& op = trace.op_of(row);
      if (op.kind != OpKind::compute || trace.spans.step[row] != step || on_server(trace, row)) continue;
      const RankClass& who = trace.classes[trace.spans.rank_class[row]];
      auto ranks = static_cast<double>(who.ranks.size());
      if (m.asynchrony)  // rounds that this worker does in the time of a step
        ranks *= m.asynchrony->workers[who.ranks.front()].rounds_per_s * m.step_time_s;
      const double seconds = trace.spans.end_s[row] - trace.spans.begin_s[row];
      computed.by_class[std::to_string(trace.spans.rank_class[row])] += seconds * share;
      computed.by_pass[std::string(kPassNames[static_cast<std::size_t>(op.pass)])] +=
          ranks * seconds / m.devices * share;
    }
    return computed;
  }
  static StepTraffic traffic_of(const Result& r) {
    const Cluster& cluster = *r.scenario.cluster;
    return r.rounds ? whole_traffic(r.trace, *r.rounds, cluster)
                    : step_traffic(r.trace, 0, cluster, r.metrics.asynchrony);
  }
  static double value(const std::map<std::string, double>& map, const std::string& key) {
    const auto it = map.find(key);
    return it == map.end() ? 0 : it->second;
  }
};

bool differs(double base, double other) {
  return std::abs(other - base) > kNoticeable * std::max(std::abs(base), std::abs(other));
}

std::string join(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

std::string why_compute(const Facts& a, const Facts& b, double difference) {
  const auto mostly = [&](const char* pass) {
    return std::abs(b.pass(pass) - a.pass(pass)) > 0.6 * std::abs(difference) &&
           (b.pass(pass) - a.pass(pass)) * difference > 0;
  };
  if (mostly("recompute")) {
    if (a.pass("recompute") == 0) return "activations are recomputed";
    if (b.pass("recompute") == 0) return "nothing is recomputed";
    return difference > 0 ? "more is recomputed" : "less is recomputed";
  }
  if (mostly("optimizer") && a.servers() != b.servers())
    return b.servers() ? "servers update the weights" : "workers update the weights, not servers";
  const double base_slowed_s = a.result.metrics.breakdown.slowed_s / a.scale;
  const double other_slowed_s = b.result.metrics.breakdown.slowed_s / b.scale;
  const double slowed_s = other_slowed_s - base_slowed_s;
  if (std::abs(slowed_s) > 0.6 * std::abs(difference) && slowed_s * difference > 0) {
    if (other_slowed_s == 0) return "no collectives slow it down";
    return fmt::format("concurrent collectives prolong it by {}{}", human_time_s(other_slowed_s),
                       base_slowed_s > 0 ? " instead of " + human_time_s(base_slowed_s) : "");
  }
  const Scenario &base = a.result.scenario, &other = b.result.scenario;
  std::vector<std::string> causes;
  if (a.result.metrics.devices != b.result.metrics.devices)
    causes.push_back(fmt::format("{} instead of {} devices share the work",
                                 with_digits(b.result.metrics.devices, 1),
                                 with_digits(a.result.metrics.devices, 1)));
  if (a.flops > 0 && b.flops > 0 && differs(a.flops, b.flops))
    causes.push_back(fmt::format("each does {} the arithmetic", times(b.flops / a.flops)));
  const double base_s = a.result.metrics.breakdown.compute_s / a.scale;
  const double other_s = b.result.metrics.breakdown.compute_s / b.scale;
  if (a.flops > 0 && b.flops > 0 && base_s > 0 && other_s > 0 &&
      differs(a.flops / base_s, b.flops / other_s)) {
    std::vector<std::string> by;
    const Device &from = base.cluster->node().device, &to = other.cluster->node().device;
    if (from.name != to.name) by.push_back(to.title);
    if (base.training.precision != other.training.precision)
      by.emplace_back(name_of(other.training.precision));
    if (base.training.micro_batch != other.training.micro_batch)
      by.push_back(fmt::format("micro-batches of {} instead of {}", other.training.micro_batch,
                               base.training.micro_batch));
    const bool same_devices = a.slow_device() == b.slow_device();
    if (by.empty() && !same_devices)
      by.push_back(b.slow_device().empty() ? "no slow device" : b.slow_device());
    causes.push_back(fmt::format("it runs at {} the rate{}", times(b.flops / other_s / (a.flops / base_s)),
                                 by.empty() ? "" : ": " + join(by, ", ")));
  }
  if (causes.empty() && b.slow_device() != a.slow_device() && !b.slow_device().empty() && difference > 0)
    causes.push_back(b.slow_device());
  return join(causes, "; ");
}

std::string why_communication(const Facts& a, const Facts& b, double difference) {
  const bool more = difference > 0;
  if (b.link.name.empty()) return "nothing is sent over links";
  if (a.link.name.empty()) return fmt::format("{} carries {}", b.link.name, human_bytes(b.link.bytes));
  std::vector<std::string> causes;
  // Only changes in the same direction as the change of the time are causes.
  if (differs(a.link.bytes, b.link.bytes) && (b.link.bytes > a.link.bytes) == more) {
    const std::string of = a.link.name == b.link.name ? "" : " of " + a.link.name;
    causes.push_back(fmt::format("the busiest link, {}, carries {} the bytes{}: {} instead of {}",
                                 b.link.name, times(b.link.bytes / a.link.bytes), of,
                                 human_bytes(b.link.bytes), human_bytes(a.link.bytes)));
  }
  if (differs(a.link.bandwidth, b.link.bandwidth) && (b.link.bandwidth < a.link.bandwidth) == more)
    causes.push_back(fmt::format("{} has {}/s instead of {}/s",
                                 causes.empty() ? "the busiest link, " + b.link.name + "," : "it",
                                 human_bytes(b.link.bandwidth), human_bytes(a.link.bandwidth)));
  const bool overlap = b.result.scenario.strategy.overlap;
  if (overlap != a.result.scenario.strategy.overlap && overlap != more)
    causes.emplace_back(overlap ? "it overlaps with the backward pass"
                                : "nothing of it overlaps with the backward pass");
  if (b.result.scenario.strategy.blocking_p2p != a.result.scenario.strategy.blocking_p2p &&
      b.result.scenario.strategy.blocking_p2p == more)
    causes.emplace_back(more ? "transfers hold up computation" : "transfers do not hold up computation");
  const double latency_s = b.path("latency") - a.path("latency");
  if (causes.empty() && std::abs(latency_s) > 0.3 * std::abs(difference) && (latency_s > 0) == more)
    causes.push_back(fmt::format("startup and latency, {} on the critical path instead of {}",
                                 human_time_s(b.path("latency")), human_time_s(a.path("latency"))));
  const double compute_s = b.result.metrics.breakdown.compute_s / b.scale,
               base_compute_s = a.result.metrics.breakdown.compute_s / a.scale;
  if (causes.empty() && differs(base_compute_s, compute_s) && (compute_s < base_compute_s) == more)
    causes.push_back(fmt::format("there is {} computation to overlap with", more ? "less" : "more"));
  if (causes.empty() && a.schedule() != b.schedule())
    causes.push_back(fmt::format("the schedule is {} instead of {}", b.schedule(), a.schedule()));
  return join(causes, "; ");
}

std::string why_bubble(const Facts& a, const Facts& b, double difference) {
  const bool base = a.result.scenario.strategy.pipeline > 1, other = b.result.scenario.strategy.pipeline > 1;
  const bool more = difference > 0;
  if (other && !base) return fmt::format("{} slots of the pipeline are idle", b.idle_slots());
  if (base && !other) return "there is no pipeline";
  if (a.idle_slots() != b.idle_slots())
    return fmt::format("{} slots are idle instead of {}", b.idle_slots(), a.idle_slots());
  if (more && !b.slow_device().empty() && a.slow_device().empty()) return b.slow_device();
  if (a.schedule() != b.schedule())
    return fmt::format("the schedule is {} instead of {}", b.schedule(), a.schedule());
  if (differs(a.slowest_s, b.slowest_s) && (b.slowest_s > a.slowest_s) == more)
    return fmt::format("the slowest stage computes for {} instead of {}", human_time_s(b.slowest_s),
                       human_time_s(a.slowest_s));
  const double transfers_s = b.path("pipeline transfer") - a.path("pipeline transfer");
  if (transfers_s != 0 && (transfers_s > 0) == more)
    return fmt::format("stages wait {} for transfers", more ? "longer" : "less");
  return "";
}

std::string why_waiting(const Facts& a, const Facts& b, double difference) {
  const std::string slow = difference > 0 ? b.slow_device() : a.slow_device();
  const std::string not_slow = difference > 0 ? a.slow_device() : b.slow_device();
  if (!slow.empty() && not_slow.empty()) return difference > 0 ? slow : "no device is slow";
  const double servers_s = b.path("server work") - a.path("server work");
  if (servers_s != 0 && (servers_s > 0) == (difference > 0))
    return fmt::format("servers work for {} of the critical path", human_time_s(b.path("server work")));
  return "";
}

struct Part {
  std::string name, key;
  double difference = 0;
};

std::string why(const Part& part, const Facts& a, const Facts& b) {
  if (part.key == "compute_s") return why_compute(a, b, part.difference);
  if (part.key == "pipeline_bubble_s") return why_bubble(a, b, part.difference);
  if (part.key == "other_s") return why_waiting(a, b, part.difference);
  if (part.key == "data_stall_s" || part.key == "kernel_launch_wait_s" || part.key == "profiled_wait_s" ||
      part.key == "checkpoint_stall_s")
    return "";
  return why_communication(a, b, part.difference);
}

// Returns the parts of the breakdown that either result has.
std::vector<Part> parts_of(const Facts& a, const Facts& b) {
  std::vector<Part> parts;
  const auto add = [&](const Facts& facts, double sign) {
    for (const Figure& figure : figures_of(facts.result, facts.scale)) {
      if (figure.kind != Figure::Kind::seconds || figure.key == "step_time_s") continue;
      auto it = std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.key == figure.key; });
      if (it == parts.end()) it = parts.insert(parts.end(), {figure.title, figure.key, 0});
      it->difference += sign * figure.value;
    }
  };
  add(a, -1);
  add(b, 1);
  return parts;
}

}  // namespace

std::string difference_sentence(const Result& base, const Result& other, const std::string& base_name,
                                const std::string& name) {
  const bool per_sample = !same_samples(base, other);
  const Facts a(base, per_sample ? samples_per_step(base) : 1),
      b(other, per_sample ? samples_per_step(other) : 1);
  const double base_s = base.metrics.step_time_s / a.scale, other_s = other.metrics.step_time_s / b.scale;
  const double ratio = other_s / base_s, difference = other_s - base_s;
  const TimeScale time(std::max(base_s, other_s));

  std::string text = name + " ";
  if (std::abs(ratio - 1) < kSame / 10) {
    text += "takes as long as " + base_name;
  } else {
    const double factor = std::max(ratio, 1 / ratio);
    text += "is " + (factor < 1.1 ? in_percent(factor - 1) : with_digits(factor, factor < 10 ? 3 : 2) + " x");
    text += ratio > 1 ? " slower" : " faster";
  }
  if (per_sample)
    text += fmt::format(" per sample (a step trains {} instead of {})",
                        with_digits(samples_per_step(other), 1), with_digits(samples_per_step(base), 1));

  std::vector<Part> parts = parts_of(a, b), told;
  std::stable_sort(parts.begin(), parts.end(), [](const Part& x, const Part& y) {
    return std::abs(x.difference) > std::abs(y.difference);
  });
  bool compute_equal = false;
  for (const Part& part : parts) {
    const bool equal =
        std::abs(part.difference) < std::min(kSame * base_s, kMatters * std::abs(difference)) ||
        std::abs(part.difference) < kMatters * std::abs(difference);
    if (part.key == "compute_s") compute_equal = std::abs(part.difference) < kSame * base_s;
    if (!equal && std::abs(part.difference) > kSame / 10 * base_s) told.push_back(part);
  }
  // First the parts that made the difference, then those that worked against it.
  std::stable_partition(told.begin(), told.end(),
                        [&](const Part& part) { return (part.difference > 0) == (difference > 0); });
  std::vector<std::string> listed, causes;
  for (const Part& part : told) {
    std::string cause = why(part, a, b);
    if (std::find(causes.begin(), causes.end(), cause) != causes.end()) cause.clear();  // already given
    causes.push_back(cause);
    listed.push_back(fmt::format("{}{} {}{}", part.difference > 0 ? "+" : "-",
                                 time(std::abs(part.difference)), part.name,
                                 cause.empty() ? "" : " (" + cause + ")"));
  }
  if (compute_equal &&
      std::none_of(told.begin(), told.end(), [](const Part& p) { return p.key == "compute_s"; }))
    listed.emplace_back("compute equal");
  if (!listed.empty()) text += ": " + join(listed, ", ");
  text += ".";
  if (!other.metrics.memory.fits && base.metrics.memory.fits)
    text += fmt::format(" {} does not fit: {} of {} GiB.", name, in_gibibytes(other.metrics.memory.total),
                        in_gibibytes(other.metrics.memory.capacity));
  return text;
}

}  // namespace rehearse
