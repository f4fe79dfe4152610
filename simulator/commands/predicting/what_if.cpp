#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "simulator/commands/predicting/predict.hpp"
#include "simulator/commands/predicting/side_by_side.hpp"
#include "simulator/costs/compute.hpp"
#include "simulator/engine/engine.hpp"
#include "simulator/scenario/fewer_microbatches.hpp"
#include "simulator/trace/rows.hpp"
#include "topologies/faster.hpp"

namespace rehearse {
namespace {

// Maximum events of all runs together, some two seconds of one core (82,000 events of GPT-3 175B, 48 stages:
// 0.3 s).
constexpr double kMostEvents = 500'000;
constexpr double kMostSlowAlone = 4;

template <class Condition>
bool has_op(const Schedule& schedule, Condition condition) {
  return std::any_of(schedule.programs.begin(), schedule.programs.end(), [&](const Program& program) {
    return std::any_of(program.ops.begin(), program.ops.end(), condition);
  });
}

// Returns whether any transfer has latency. Resources that a run does not use need not be tried.
bool has_latency(const Trace& trace) {
  for (std::size_t row = 0; row < trace.spans.latency_s.size(); ++row)
    if (trace.spans.latency_s[row] > 0 && is_transfer(trace.op_of(row))) return true;
  return false;
}

bool uses(const Prediction& p, Resource resource) {
  const Cluster& cluster = *p.scenario.cluster;
  const auto link_used = [&](bool network) {
    return std::any_of(p.trace.link_use.begin(), p.trace.link_use.end(), [&](const LinkUse& use) {
      const LinkPlace place = cluster.link_place(use.link);
      return place.kind != LinkPlace::Kind::storage && crosses_network(place) == network;
    });
  };
  switch (resource) {
    case Resource::compute:
      return true;
    case Resource::memory_bandwidth: {
      const Device& device = cluster.node().device;
      Device other = device;
      other.memory_bandwidth.value *= kFaster;
      const auto& works = p.plan.schedule->works;
      return std::any_of(works.begin(), works.end(), [&](const Work& work) {
        return work_time_s(work, other) < work_time_s(work, device);
      });
    }
    case Resource::intra_node_links:
      return link_used(false) || has_op(*p.plan.schedule, copies_to_or_from_device);
    case Resource::network_links:
      return link_used(true);
    case Resource::latency:
      return has_latency(p.trace);
    case Resource::servers:
      return std::any_of(
          p.plan.schedule->programs.begin(), p.plan.schedule->programs.end(),
          [](const Program& program) { return program.role != kWorkers && !program.ops.empty(); });
    case Resource::host:
      return has_op(*p.plan.schedule, [](const Op& op) {
        return op.kind == OpKind::host && op.host_bytes > 0 && !copies_to_or_from_device(op);
      });
    case Resource::launches:
      return p.scenario.engine.launches.any();
    case Resource::input:
      return has_op(*p.plan.schedule, [](const Op& op) {
        return op.purpose == Purpose::input && !copies_to_or_from_device(op);
      });
  }
  return false;
}

double step_s_of(const Trace& trace, const Schedule& schedule) {
  const StepWindow window = last_step(trace, 0);
  return (window.end_s - window.begin_s) / schedule.optimizer_steps;
}

// Returns the step time with 10 % more of a resource; infinity if the rounds of micro-batches are no longer
// alike. Simulates in this process.
double step_time_with(const Prediction& p, Resource resource) {
  Faster factors;
  EngineOptions options = p.scenario.engine;
  switch (resource) {
    case Resource::compute:
      factors.devices = kFaster;
      break;
    case Resource::memory_bandwidth:
      factors.device_memory = kFaster;
      break;
    case Resource::intra_node_links:
      factors.intra_node_links = kFaster;
      break;
    case Resource::network_links:
      factors.network_links = kFaster;
      break;
    case Resource::latency:
      options.latency_factor /= kFaster;
      break;
    case Resource::servers:
      factors.processors = kFaster;
      break;
    case Resource::host:
      factors.host = kFaster;
      break;
    case Resource::launches:
      options.launches.kernel_s /= kFaster;
      options.launches.routed_kernel_s /= kFaster;
      options.launches.expert_product_s /= kFaster;
      options.launches.collective_s /= kFaster;
      options.launches.step_s /= kFaster;
      break;
    case Resource::input:
      factors.storage = kFaster;
      options.input_speed *= kFaster;
      break;
  }
  const std::shared_ptr<const Cluster> cluster = faster(p.scenario.cluster, factors);
  const bool has_timers = has_op(*p.plan.schedule, is_timer);  // set according to the device's speed
  const Schedules schedules = has_timers ? Schedules::to_check : Schedules::checked;
  const auto run_of = [&](const Trace& trace, int microbatches) {
    Run run = trace.run;
    if (has_timers) {
      Scenario scenario = p.rounds ? with_microbatches(p.scenario, microbatches) : p.scenario;
      scenario.cluster = cluster;
      run.jobs.front().phases.front().schedule = write_schedule(scenario).schedule;
    }
    return run;
  };
  if (!p.rounds)
    return step_s_of(simulate(run_of(p.trace, p.scenario.microbatches), *cluster, options, schedules),
                     *p.plan.schedule);
  const int microbatches = p.rounds->microbatches;
  const Trace shorter = simulate_in_child(run_of(p.rounds->shorter, microbatches - p.rounds->round), *cluster,
                                          options, {}, schedules),
              longer = simulate(run_of(p.trace, microbatches), *cluster, options, schedules);
  if (!repeats_a_round(shorter, longer)) return std::numeric_limits<double>::infinity();
  return p.rounds->extended(step_s_of(shorter, *p.plan.schedule), step_s_of(longer, *p.plan.schedule));
}

// Returns the step time that the scenario without these slow parts would have. Writes the schedule again and
// simulates in this process.
double step_time_at_full_speed(const Prediction& p, const std::vector<int>& slow_parts) {
  Faster factors;
  factors.at_full_speed = slow_parts;
  Scenario scenario = p.scenario;
  scenario.cluster = faster(p.scenario.cluster, factors);
  return predict(std::move(scenario), Where::here).metrics.step_time_s;
}

// Lists all slowed parts that may matter together, and then the slowest of them alone, as many as are cheap.
std::vector<SlowCost> slow_costs(const Prediction& p) {
  const std::vector<SlowPart>& parts = p.scenario.cluster->slow_parts;
  std::vector<int> slow;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool idle = parts[i].device >= 0 &&
                      std::count(p.plan.endpoints.begin(), p.plan.endpoints.end(), parts[i].device) == 0;
    if (parts[i].factor < 1 && !idle) slow.push_back(static_cast<int>(i));
  }
  if (slow.empty()) return {};
  std::vector<SlowCost> costs = {{slow, 0}};
  if (slow.size() == 1) return costs;
  std::stable_sort(slow.begin(), slow.end(), [&](int a, int b) {
    return parts[static_cast<std::size_t>(a)].factor < parts[static_cast<std::size_t>(b)].factor;
  });
  const double cheap = kMostEvents / static_cast<double>(std::max<std::int64_t>(1, p.trace.engine.events));
  const double alone = std::min({kMostSlowAlone, cheap - 1, static_cast<double>(slow.size())});
  for (int i = 0; i + 1 <= alone; ++i) costs.push_back({{slow[static_cast<std::size_t>(i)]}, 0});
  return costs;
}

}  // namespace

void explain(Prediction& p, const WatchPrediction& watch) {
  p.slow = slow_costs(p);
  std::vector<std::function<double()>> runs;
  for (const SlowCost& cost : p.slow)
    runs.emplace_back([&p, parts = cost.parts] { return step_time_at_full_speed(p, parts); });
  const auto simulate_slow = [&](const std::vector<double>& times_s) {
    for (std::size_t i = 0; i < p.slow.size(); ++i) p.slow[i].step_time_s = times_s[i];
  };
  // Asynchronous workers have no common step to whose end a path could lead.
  if (p.metrics.asynchrony) return simulate_slow(step_times(runs, processors(), watch.what_ifs));
  p.path = critical_path(p.trace, 0);
  std::array<double, kResourceNames.size()> saved_s = path_savings_s(p.path, p.trace, *p.scenario.cluster);
  if (p.rounds) {
    p.rounds->shorter_path = critical_path(p.rounds->shorter, 0);
    const auto shorter_s = path_savings_s(p.rounds->shorter_path, p.rounds->shorter, *p.scenario.cluster);
    for (std::size_t r = 0; r < saved_s.size(); ++r)
      saved_s[r] = p.rounds->extended(shorter_s[r], saved_s[r]);
  }
  std::vector<Resource> used;
  for (std::size_t r = 0; r < kResourceNames.size(); ++r)
    if (uses(p, static_cast<Resource>(r))) used.push_back(static_cast<Resource>(r));
  const bool cheap =
      !p.scenario.engine.jitter.any() &&  // a single step says little then
      static_cast<double>(p.trace.engine.events) * static_cast<double>(used.size()) <= kMostEvents;
  for (const Resource resource : cheap ? used : std::vector<Resource>())
    runs.emplace_back([&p, resource] { return step_time_with(p, resource); });
  const std::vector<double> times_s = step_times(runs, processors(), watch.what_ifs);
  simulate_slow(times_s);
  p.faster.clear();
  for (std::size_t i = 0; i < used.size(); ++i) {
    WhatIf what_if{
        used[i], {}, saved_s[static_cast<std::size_t>(used[i])] / p.plan.schedule->optimizer_steps};
    // Checkpoints are assumed to take as long as before.
    if (cheap && std::isfinite(times_s[p.slow.size() + i]))
      what_if.step_time_s = times_s[p.slow.size() + i] + p.metrics.breakdown.checkpoint_s;
    p.faster.push_back(what_if);
  }
}

}  // namespace rehearse
