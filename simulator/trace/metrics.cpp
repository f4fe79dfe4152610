#include "simulator/trace/metrics.hpp"

#include <algorithm>
#include <map>

#include "models/text/error.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {

namespace {

// What the workers' devices have, which can be of several kinds.
struct UsedDevices {
  std::map<int, int> devices_of_group;  // -1: the nodes outside of all groups
  const Cluster& cluster;

  UsedDevices(const Cluster& of, const std::vector<int>& endpoints, int workers) : cluster(of) {
    if (of.groups().empty())
      devices_of_group[-1] = workers;
    else
      for (int rank = 0; rank < workers; ++rank)
        ++devices_of_group[of.group_of_node(of.node_of(endpoints[static_cast<std::size_t>(rank)]))];
  }
  const Device& device(int group) const {
    return group < 0 ? cluster.node().device : cluster.groups()[static_cast<std::size_t>(group)].device;
  }
  double mean_peak(Precision precision) const {
    double sum = 0, devices = 0;
    for (const auto& [group, count] : devices_of_group) {
      sum += count * device(group).peak_flops[static_cast<std::size_t>(precision)].value;
      devices += count;
    }
    return sum / devices;
  }
  double least_memory_bytes() const {
    double least = device(devices_of_group.begin()->first).memory_bytes.value;
    for (const auto& [group, count] : devices_of_group)
      least = std::min(least, device(group).memory_bytes.value);
    return least;
  }
};

bool is_asynchronous(const Trace& trace, int job) {
  return trace.run.jobs[job].phases.back().schedule->asynchrony.has_value();
}

bool uses_host_memory(const Schedule& schedule) {
  return std::any_of(schedule.programs.begin(), schedule.programs.end(), [](const Program& program) {
    return std::any_of(program.tensors.begin(), program.tensors.end(),
                       [](const Tensor& tensor) { return tensor.memory != TensorMemory::device; });
  });
}

}  // namespace

StepWindow last_step(const Trace& trace, int job) {
  StepWindow window;
  if (is_asynchronous(trace, job)) {
    const AsynchronyFigures figures = asynchrony_figures(trace, job);
    return {figures.window_begin_s, figures.window_end_s};
  }
  const int last = last_step_number(trace, job);
  for (std::size_t row = 0; row < trace.spans.size(); ++row) {
    if (trace.classes[trace.spans.rank_class[row]].job != job) continue;
    if (trace.op_of(row).for_next_step) continue;
    const double end_s = trace.spans.end_s[row];
    if (trace.spans.step[row] < last) window.begin_s = std::max(window.begin_s, end_s);
    window.end_s = std::max(window.end_s, end_s);
  }
  return window;
}

void set_traffic(Metrics& metrics, const StepTraffic& traffic, const Cluster& cluster) {
  metrics.network_bytes_per_step = traffic.bytes;
  metrics.busiest_link.clear();
  metrics.busiest_utilization = 0;
  for (const LinkLoad& load : traffic.links) {
    const double utilization = load.bytes / (cluster.bandwidth(load.link) * metrics.step_time_s);
    if (utilization > metrics.busiest_utilization) {
      metrics.busiest_utilization = utilization;
      metrics.busiest_link = cluster.link_name(load.link);
      metrics.busiest_place = cluster.link_place(load.link);
    }
  }
}

Metrics evaluate(const Trace& trace, const Scenario& scenario, const Plan& plan) {
  if (!trace.job_failed.empty() && trace.job_failed.front()) {
    std::string why = "the job failed";
    for (const std::string& failure : trace.failures)
      why += (&failure == &trace.failures[0] ? ": " : "; ") + failure;
    throw RunError(why);
  }
  const int step = last_step_number(trace, 0);
  if (step < 0) throw RunError("the job did nothing: its schedule has no ops");

  const Schedule& schedule = *plan.schedule;
  Metrics metrics;
  double schedule_s = 0;
  if (is_asynchronous(trace, 0)) {
    metrics.asynchrony = asynchrony_figures(trace, 0);
    metrics.asynchrony->link_bytes_per_s = window_traffic(trace, 0, *scenario.cluster, *metrics.asynchrony);
    schedule_s = schedule.samples / metrics.asynchrony->samples_per_s;
  } else {
    const StepWindow window = last_step(trace, 0);
    schedule_s = window.end_s - window.begin_s;
  }
  if (!(schedule_s > 0)) throw RunError("the step takes no time: nothing computes and nothing is sent");

  const double steps_of_schedule = schedule.optimizer_steps;
  metrics.step_time_s = schedule_s / steps_of_schedule;
  metrics.samples = schedule.samples;
  metrics.samples_per_s = schedule.samples / schedule_s;
  metrics.tokens_per_s = schedule.tokens / schedule_s;
  metrics.devices = schedule.roles.front().size();

  double model_flops = 0, all_flops = 0;
  for (std::size_t row = 0; row < trace.spans.size(); ++row) {
    const RankClass& rank_class = trace.classes[trace.spans.rank_class[row]];
    if (rank_class.job != 0 || trace.spans.step[row] != step) continue;
    const Schedule& its_schedule = schedule_of(trace, row);
    const Op& op = trace.op_of(row);
    if (op.kind != OpKind::compute || op.work < 0 || rank_class.role != kWorkers) continue;
    const Work& work = its_schedule.works[op.work];
    const auto ranks = static_cast<double>(rank_class.ranks.size());
    model_flops += ranks * work.model_flops;
    all_flops += ranks * (work.model_flops + work.extra_flops);
  }
  const double device_seconds = schedule_s * metrics.devices;
  const UsedDevices used(*scenario.cluster, plan.endpoints, metrics.devices);
  const double peak = used.mean_peak(scenario.training.precision);
  metrics.model_tflops_per_device = model_flops / device_seconds / 1e12;
  metrics.mfu = peak > 0 ? model_flops / device_seconds / peak : 0;
  metrics.hfu = peak > 0 ? all_flops / device_seconds / peak : 0;

  metrics.breakdown = break_down(trace, 0);
  metrics.breakdown.scale(1 / steps_of_schedule);
  metrics.memory = memory_use(trace, 0, used.least_memory_bytes());

  if (uses_host_memory(*plan.schedule))
    metrics.host_memory =
        host_memory_use(trace, 0, *scenario.cluster, scenario.framework.host_memory_factor.value);
  set_traffic(metrics, step_traffic(trace, 0, *scenario.cluster, metrics.asynchrony), *scenario.cluster);
  return metrics;
}

}  // namespace rehearse
