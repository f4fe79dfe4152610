#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "models/base/error.hpp"
#include "simulator/commands/predict.hpp"
#include "simulator/commands/task_pool.hpp"
#include "simulator/costs/compute.hpp"
#include "simulator/engine/engine.hpp"
#include "simulator/trace/rows.hpp"
#include "topologies/faster.hpp"

namespace rehearse {
namespace {

// Events of all runs together, some two seconds of one core (82,000 events of GPT-3 175B, 48 stages: 0.3 s).
constexpr double kMostEvents = 500'000;

// A resource that a run does not use need not be tried.
bool uses(const Prediction& p, Resource resource) {
  const Cluster& cluster = *p.scenario.cluster;
  const auto link_used = [&](bool inside) {
    return std::any_of(p.trace.link_use.begin(), p.trace.link_use.end(),
                       [&](const LinkUse& use) { return cluster.inside_node(use.link) == inside; });
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
      return link_used(true);
    case Resource::network_links:
      return link_used(false);
    case Resource::latency:
      return std::any_of(p.trace.spans.latency_s.begin(), p.trace.spans.latency_s.end(),
                         [](double seconds) { return seconds > 0; });
    case Resource::servers:
      return std::any_of(p.plan.schedule->roles.begin(), p.plan.schedule->roles.end(),
                         [](const Role& role) { return role.name == "server"; });
  }
  return false;
}

bool has_timers(const Schedule& schedule) {
  for (const Program& program : schedule.programs)
    for (const Op& op : program.ops)
      if (is_timer(op)) return true;
  return false;
}

// Simulates in this process.
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
  }
  const std::shared_ptr<const Cluster> cluster = faster(p.scenario.cluster, factors);
  Run run = p.trace.run;
  if (has_timers(*p.plan.schedule)) {  // they are set for the device's speed
    Scenario scenario = p.scenario;
    scenario.cluster = cluster;
    run.jobs.front().phases.front().schedule = write_schedule(scenario).schedule;
  }
  const Trace trace = simulate(run, *cluster, options);
  const StepWindow window = last_step(trace, 0);
  return (window.end_s - window.begin_s) / p.plan.schedule->optimizer_steps;
}

// The step with each of the resources made faster, simulated side by side, each in a process of its own.
std::vector<double> step_times_with(const Prediction& p, const std::vector<Resource>& resources) {
  std::vector<double> times_s(resources.size(), 0);
  std::int64_t next = 0;
  TaskPool pool;
  pool.jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  pool.next = [&] { return next < static_cast<std::int64_t>(resources.size()) ? next++ : -1; };
  pool.work = [&](std::int64_t task) {
    const double time_s = step_time_with(p, resources[static_cast<std::size_t>(task)]);
    std::string bytes(sizeof time_s, '\0');
    std::memcpy(bytes.data(), &time_s, sizeof time_s);
    return bytes;
  };
  pool.ended = [&](const TaskEnd& end) {
    if (end.output.size() != sizeof(double))
      throw RunError("the step with a resource made faster: " + end.failure);
    std::memcpy(&times_s[static_cast<std::size_t>(end.task)], end.output.data(), sizeof(double));
  };
  pool.tick = [] {};
  run(pool);
  return times_s;
}

}  // namespace

void explain(Prediction& p) {
  if (p.metrics.asynchrony) return;  // workers have no step in common whose end a path could lead to
  p.path = critical_path(p.trace, 0);
  const std::array<double, kResourceNames.size()> saved_s =
      path_savings_s(p.path, p.trace, *p.scenario.cluster);
  std::vector<Resource> used;
  for (std::size_t r = 0; r < kResourceNames.size(); ++r)
    if (uses(p, static_cast<Resource>(r))) used.push_back(static_cast<Resource>(r));
  const bool cheap =
      static_cast<double>(p.trace.engine.events) * static_cast<double>(used.size()) <= kMostEvents;
  const std::vector<double> times_s = cheap ? step_times_with(p, used) : std::vector<double>();
  p.faster.clear();
  for (std::size_t i = 0; i < used.size(); ++i) {
    WhatIf what_if{
        used[i], {}, saved_s[static_cast<std::size_t>(used[i])] / p.plan.schedule->optimizer_steps};
    if (cheap) what_if.step_time_s = times_s[i];
    p.faster.push_back(what_if);
  }
}

}  // namespace rehearse
