// Implements `rehearse jobs`: each policy runs in a process of its own.
#include "simulator/commands/jobs/jobs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <ostream>
#include <type_traits>

#include "models/text/error.hpp"
#include "models/text/output_file.hpp"
#include "models/text/printable.hpp"
#include "simulator/commands/jobs/jobs_answer.hpp"
#include "simulator/commands/jobs/scenario_steps.hpp"
#include "simulator/commands/predicting/collective_time.hpp"
#include "simulator/commands/predicting/side_by_side.hpp"
#include "simulator/commands/tasks/task_pool.hpp"
#include "simulator/life/scheduling/run_jobs.hpp"

namespace rehearse {
namespace {

std::vector<const SchedulingPolicy*> policies_of(const std::string& text) {
  std::vector<const SchedulingPolicy*> policies;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, comma - at);
    const SchedulingPolicy* policy = find_policy(name);
    std::vector<std::string_view> known;
    for (const SchedulingPolicy& one : scheduling_policies()) known.push_back(one.name);
    if (policy == nullptr)
      throw InputError({"--policy"},
                       fmt::format("names \"{}\"; allowed: {}", printable(name), fmt::join(known, ", ")));
    if (std::find(policies.begin(), policies.end(), policy) != policies.end())
      throw InputError({"--policy"}, fmt::format("names {} twice; allowed: each once", name));
    policies.push_back(policy);
    at = comma + 1;
  }
  return policies;
}

void refuse_too_large_jobs(const JobList& list, const Cluster& cluster) {
  for (const ListedJob& job : list.jobs)
    if (job.devices > cluster.devices())
      throw InputError(
          {list.path, job.line, job.line > 0 ? 1 : 0},
          fmt::format("job \"{}\" asks for {} devices; allowed: at most {}, those of {}", printable(job.name),
                      job.devices, cluster.devices(), cluster.title.empty() ? cluster.name : cluster.title));
}

// What a child sends: whether it failed, and the message or the figures as they lie in memory.
template <typename T>
void put(std::string& bytes, const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::size_t count = values.size();
  bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
  bytes.append(reinterpret_cast<const char*>(values.data()), count * sizeof(T));
}

template <typename T>
void take(std::string_view& bytes, std::vector<T>& values) {
  std::size_t count = 0;
  std::memcpy(&count, bytes.data(), sizeof count);
  bytes.remove_prefix(sizeof count);
  values.resize(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), count * sizeof(T));
  bytes.remove_prefix(count * sizeof(T));
}

std::string packed(const JobsResult& result) {
  std::string bytes = "+";
  put(bytes, result.outcomes);
  put(bytes, result.spans);
  put(bytes, std::vector<std::int64_t>{result.decisions, result.most_active});
  return bytes;
}

JobsResult unpacked(std::string_view bytes) {
  JobsResult result;
  std::vector<std::int64_t> counts;
  bytes.remove_prefix(1);
  take(bytes, result.outcomes);
  take(bytes, result.spans);
  take(bytes, counts);
  result.decisions = counts[0];
  result.most_active = counts[1];
  return result;
}

void run_policies(JobsAnswer& answer, int processes) {
  std::string failure;
  std::size_t next = 0;
  TaskPool pool;
  pool.jobs = processes;
  pool.next = [&] { return next < answer.policies.size() ? static_cast<std::int64_t>(next++) : -1; };
  pool.work = [&](std::int64_t task) {
    try {
      return packed(run_jobs(answer.run, *answer.policies[static_cast<std::size_t>(task)].policy));
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
  };
  pool.ended = [&](const TaskEnd& end) {
    PolicyAnswer& one = answer.policies[static_cast<std::size_t>(end.task)];
    if (!end.failure.empty() || end.output.empty() || end.output.front() != '+') {
      if (failure.empty()) failure = end.failure.empty() ? end.output : end.failure;
      return;
    }
    one.result = unpacked(end.output);
    one.figures = jobs_figures(answer.run, one.result);
  };
  pool.tick = [] {};
  run(pool);
  if (!failure.empty()) throw RunError(failure);
}

}  // namespace

void run_jobs_command(const JobsArguments& arguments, std::ostream& out) {
  const std::vector<const SchedulingPolicy*> policies = policies_of(arguments.policies);
  const auto cluster = collective_cluster({arguments.cluster, arguments.nodes, 0, 0, arguments.overrides});
  JobList list = read_job_list(arguments.list);
  refuse_to_overwrite("--trace", arguments.trace, {arguments.list, arguments.cluster});
  refuse_too_large_jobs(list, *cluster);
  const int processes = arguments.processes > 0 ? arguments.processes : processors();
  find_scenario_steps(list, arguments.cluster, arguments.overrides, cluster->node().devices, processes);
  JobsRun run;
  run.jobs = &list.jobs;
  run.nodes = cluster->nodes();
  run.devices_per_node = cluster->node().devices;
  run.nodes_per_leaf = nodes_per_leaf(*cluster);
  run.placement = arguments.placement;
  run.start_cost_s = arguments.start_cost_s;
  run.preemption_cost_s = arguments.preemption_cost_s;
  run.interval_s = arguments.interval_s;
  run.record_spans = !arguments.trace.empty();
  JobsAnswer answer{list, *cluster, run, {}};
  for (const SchedulingPolicy* policy : policies) answer.policies.push_back({policy, {}, {}});
  run_policies(answer, processes);
  if (!arguments.trace.empty()) write_jobs_trace(answer, arguments.trace);
  switch (arguments.format) {
    case Format::text:
      write_jobs_text(answer, out);
      break;
    case Format::json:
      write_jobs_json(answer, out);
      break;
    case Format::csv:
      write_jobs_csv(answer, out);
      break;
  }
}

}  // namespace rehearse
