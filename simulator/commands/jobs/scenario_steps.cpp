#include "simulator/commands/jobs/scenario_steps.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "models/text/number_in.hpp"
#include "models/text/printable.hpp"
#include "models/text/toml_text.hpp"
#include "simulator/commands/predicting/collective_time.hpp"
#include "simulator/commands/predicting/predict.hpp"
#include "simulator/commands/tasks/task_pool.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"

namespace rehearse {
namespace {

// A scenario with a number of devices.
using Kind = std::pair<std::string, int>;

struct Simulated {
  Scenario scenario;
  int line = 0;  // of the first job of this kind
  double step_time_s = 0;
};

// A job gets whole nodes if it fills at least one, else a part of one.
Scenario scenario_of(const Kind& kind, const JobList& list, int line, const std::string& cluster,
                     const std::vector<std::string>& overrides, int devices_per_node) {
  const auto& [path, devices] = kind;
  const int each = std::min(devices, devices_per_node);
  if (devices % each != 0)
    throw InputError(
        {list.path, line, 1},
        fmt::format("devices are {} for a scenario; allowed: up to {}, or a multiple of {}, the devices of "
                    "a node",
                    devices, devices_per_node, devices_per_node));
  std::vector<std::string> set = {
      fmt::format("cluster.{}={}", is_cluster_preset(cluster) ? "preset" : "file", toml_string(cluster)),
      fmt::format("cluster.nodes={}", devices / each)};
  if (each < devices_per_node) set.push_back(fmt::format("cluster.devices_per_node={}", each));
  set.insert(set.end(), overrides.begin(), overrides.end());
  try {
    return read_scenario_file(path, Overrides(std::move(set)));
  } catch (const InputError& error) {
    throw InputError({list.path, line, 1},
                     fmt::format("the scenario cannot run on {} devices: {}", devices, error.what()));
  }
}

}  // namespace

void find_scenario_steps(JobList& list, const std::string& cluster, const std::vector<std::string>& overrides,
                         int devices_per_node, int processes) {
  std::map<Kind, Simulated> kinds;
  for (const ListedJob& job : list.jobs)
    if (!job.scenario.empty() && kinds.count({job.scenario, job.devices}) == 0) {
      const Kind kind{job.scenario, job.devices};
      kinds[kind] = {scenario_of(kind, list, job.line, cluster, overrides, devices_per_node), job.line};
    }
  if (kinds.empty()) return;
  std::vector<Simulated*> tasks;
  for (auto& [kind, simulated] : kinds) tasks.push_back(&simulated);
  std::string failure;
  std::int64_t next = 0;
  TaskPool pool;
  pool.jobs = processes;
  pool.next = [&] { return next < static_cast<std::int64_t>(tasks.size()) ? next++ : -1; };
  pool.work = [&](std::int64_t task) {
    try {
      const Prediction prediction = predict(tasks[static_cast<std::size_t>(task)]->scenario, Where::here);
      return fmt::format("{}", prediction.metrics.step_time_s);
    } catch (const std::exception& error) {
      return fmt::format("failed: {}", error.what());
    }
  };
  pool.ended = [&](const TaskEnd& end) {
    Simulated& simulated = *tasks[static_cast<std::size_t>(end.task)];
    const auto step_time_s = finite_number_in(end.output);
    if (step_time_s && *step_time_s > 0)
      simulated.step_time_s = *step_time_s;
    else if (failure.empty())
      failure = fmt::format("{}:{}: the scenario's simulation {}", printable(list.path), simulated.line,
                            end.failure.empty() ? end.output : "failed: " + end.failure);
  };
  pool.tick = [] {};
  run(pool);
  if (!failure.empty()) throw RunError(failure);
  for (ListedJob& job : list.jobs)
    if (!job.scenario.empty()) {
      job.step_time_s = kinds[{job.scenario, job.devices}].step_time_s;
      job.duration_s = job.steps * job.step_time_s;
      if (!(job.duration_s <= kLongest_s))
        throw InputError({list.path, job.line, 1},
                         fmt::format("the job would last {:.3g} s; allowed: at most 1e10 s", job.duration_s));
    }
}

}  // namespace rehearse
