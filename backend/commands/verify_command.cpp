#include "backend/commands/verify_command.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <ostream>

#include "backend/commands/run_guard.hpp"
#include "backend/host/host_executor.hpp"
#include "backend/host/launch.hpp"
#include "backend/host/started.hpp"
#include "backend/training/training_workload.hpp"
#include "models/text/error.hpp"
#include "models/text/toml_table.hpp"
#include "models/text/toml_text.hpp"
#include "simulator/report/json.hpp"
#include "simulator/report/wrap.hpp"
#include "simulator/scenario/reading/command_scenario.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"

namespace rehearse {
namespace {

// A sum in another order has other roundings, which training lets grow. In fp32, 200 random strategies over 4
// steps differed by less than 1e-5, and 50 steps of Adam at 20 times its rate by 1e-4. Processors train in
// fp32 only.
constexpr double kTolerance = 1e-4;

// What rank 0's process tells this one.
class Told {
public:
  Told() : file_(memfd_create("rehearse-verify", MFD_CLOEXEC)) {
    if (file_ < 0) throw RunError(fmt::format("no memory file: {}", std::strerror(errno)));
  }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;
  ~Told() { close(file_); }

  void write(const std::vector<double>& numbers) const {
    const auto bytes = static_cast<ssize_t>(numbers.size() * sizeof(double));
    if (pwrite(file_, numbers.data(), static_cast<std::size_t>(bytes), 0) != bytes)
      throw RunError(fmt::format("losses cannot be passed on: {}", std::strerror(errno)));
  }
  std::vector<double> read() const {
    std::vector<double> numbers(static_cast<std::size_t>(lseek(file_, 0, SEEK_END)) / sizeof(double));
    const auto bytes = static_cast<ssize_t>(numbers.size() * sizeof(double));
    if (pread(file_, numbers.data(), static_cast<std::size_t>(bytes), 0) != bytes)
      throw RunError("losses were not passed on");
    return numbers;
  }

private:
  int file_;
};

// Trains on child processes and returns the losses.
std::vector<double> train_on_ranks(const Scenario& scenario, const Plan& plan, double patience_s) {
  const Told told;
  RateQueues queues(StoragePath::queues(*scenario.cluster));
  LaunchOptions options;
  options.ranks = process_ranks(*plan.schedule);
  options.patience_s = patience_s;
  launch(options, [&](Transport& transport) {
    RealRunOptions run;
    run.check_replicas = true;
    run.queues = &queues;
    const auto result = run_rank(scenario, plan, transport, host_executor(), run);
    if (!result) return;
    if (!result->replicas_differ.empty()) throw RunError(result->replicas_differ);
    if (result->replicas_equal == false) throw RunError("replicas had different gradients");
    told.write(result->losses);
  });
  return told.read();
}

}  // namespace

LossDifference compare_losses(const std::vector<double>& losses, const std::vector<double>& alone,
                              double tolerance) {
  if (losses.size() != alone.size() || alone.empty())
    throw RunError(fmt::format("the ranks trained {} steps, and one rank {}", losses.size(), alone.size()));
  LossDifference found;
  found.steps = losses.size();
  for (std::size_t step = 0; step < losses.size(); ++step) {
    const double scale = std::max(std::abs(alone[step]), 0.01 * std::abs(alone.front())),
                 difference = std::abs(losses[step] - alone[step]) / scale;
    if (!found.over && !(difference <= tolerance)) {
      found.over = true;
      found.first_over = step;
    }
    if (!(difference <= found.largest)) found.largest = difference;
  }
  return found;
}

Scenario on_one_rank(const Scenario& scenario) {
  TomlValue root = parse_toml(scenario.text, scenario.name);
  for (const char* table : {"strategy", "cluster", "simulation", "framework", "cost", "data", "checkpoint"})
    erase_key(root, table);
  TomlValue cluster = toml_table();
  put(cluster, "preset", toml_value(std::string("cpu-cluster")));
  put(root, "cluster", std::move(cluster));
  for (const auto& [table, keys] :
       {std::pair<const char*, std::vector<const char*>>{"training", {"framework", "recompute_layers"}},
        {"run", {"collectives", "bind", "compute"}}})
    if (TomlValue* section = find_table(root, table))
      for (const char* key : keys) erase_key(*section, key);
  return read_scenario_text(toml_text(root), scenario.name + ".toml", {});
}

void run_verify(const VerifyArguments& arguments, std::istream& in, std::ostream& out) {
  Scenario scenario = read_command_scenario(arguments.scenario, arguments.overrides, in);
  if (starter_of_process(true) != Starter::none)
    throw InputError({},
                     "verify starts its ranks itself, on this machine; allowed: without mpirun, srun and "
                     "WORLD_SIZE");
  refuse_offload(scenario);
  refuse_what_is_only_predicted(scenario);
  refuse_uneven_vocabulary(scenario);
  const Plan plan = write_schedule(scenario);
  check(*plan.schedule);
  count_in_repetitions(scenario, *plan.schedule);
  std::string why = why_not_trained(scenario, *plan.schedule, true);
  if (scenario.run.compute == RealRun::Compute::timed) why = "run.compute is \"timed\"";
  if (!why.empty())
    throw InputError({},
                     fmt::format("{}: nothing is trained that could be verified: {}", scenario.name, why));
  if (why = gradient_strategy(scenario)->learns_otherwise(scenario); !why.empty())
    throw InputError(
        {}, fmt::format("{}: {}; allowed: a strategy that learns what one rank learns", scenario.name, why));
  refuse_crowding(scenario, plan, arguments.oversubscribe);
  Scenario single = on_one_rank(scenario);
  // Loading ahead can make a schedule of several steps.
  single.run.steps = real_repeats(scenario, *plan.schedule) * plan.schedule->optimizer_steps;
  single.run.warmup = 0;
  const Plan single_plan = write_schedule(single);
  check(*single_plan.schedule);
  if (why = why_not_trained(single, *single_plan.schedule, true); !why.empty())
    throw InputError({}, fmt::format("{} on one rank is not trained: {}", scenario.name, why));

  const std::vector<double> losses = train_on_ranks(scenario, plan, arguments.patience_s),
                            alone = train_on_ranks(single, single_plan, arguments.patience_s);
  const double tolerance = arguments.tolerance > 0 ? arguments.tolerance : kTolerance;
  const LossDifference found = compare_losses(losses, alone, tolerance);
  if (arguments.output.format == "json") {
    nlohmann::ordered_json json;
    json["verified"] = !found.over;
    json["ranks"] = process_ranks(*plan.schedule);
    json["steps"] = found.steps;
    json["largest_relative_difference"] = found.largest;
    json["tolerance"] = tolerance;
    json["losses"] = losses;
    json["losses_of_one_rank"] = alone;
    out << json_text(json, 2) << '\n';
  } else if (!found.over) {
    out << fmt::format(
        "verified: {} steps on {} ranks, largest relative difference {:.1e} (allowed: {:.1e})\n", found.steps,
        process_ranks(*plan.schedule), found.largest, tolerance);
  }
  out.flush();
  if (found.over)
    throw RunError(
        fmt::format("not verified: step {} of {} has loss {:.6g} on {} ranks and {:.6g} on one "
                    "(allowed: a relative difference of {:.1e})",
                    found.first_over + 1, found.steps, losses[found.first_over],
                    process_ranks(*plan.schedule), alone[found.first_over], tolerance));
}

}  // namespace rehearse
