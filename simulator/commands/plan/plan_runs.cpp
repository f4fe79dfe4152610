#include "simulator/commands/plan/plan_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "simulator/commands/tasks/ordered_tasks.hpp"

namespace rehearse {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

bool is_faster(const SimulatedPlan& a, const SimulatedPlan& b) {
  return a.figures.step_time_s < b.figures.step_time_s;
}

// The state of a world while its plans are simulated.
class WorldRun {
public:
  WorldRun(SearchedWorld& world, double tolerance) : world_(world), share_(1 - tolerance) {}

  // Returns whether the plan could still be the best one, according to what is known.
  bool wanted(std::int64_t number) {
    if (number >= end_) return false;
    const Candidate* candidate = world_.search->candidate(static_cast<std::size_t>(number));
    if (!candidate || candidate->bound_s >= best_s_ * share_ || !world_.allows(candidate->bound_s)) {
      end_ = number;  // later ones have higher bounds
      return false;
    }
    if (too_large_.count({candidate->core, holding_of(candidate->plan.gradients)}) > 0) return false;
    const auto core = without_gradients_s_.find(candidate->core);
    return core == without_gradients_s_.end() || core->second < best_s_ * share_;
  }

  const Candidate& candidate(std::int64_t number) {
    return *world_.search->candidate(static_cast<std::size_t>(number));
  }

  void take(std::int64_t number, PlanFigures figures) {
    SimulatedPlan plan{candidate(number), std::move(figures)};
    const PlanFigures& its = plan.figures;
    switch (its.status) {
      case PlanFigures::Status::ok:
        if (world_.allows(its.step_time_s)) best_s_ = std::min(best_s_, its.step_time_s);
        if (!plan.candidate.plan.gradients.servers)
          without_gradients_s_[plan.candidate.core] = its.without_gradients_s;
        world_.simulated.push_back(std::move(plan));
        break;
      case PlanFigures::Status::too_large:
        ++world_.too_large;
        too_large_.insert({plan.candidate.core, holding_of(plan.candidate.plan.gradients)});
        if (!world_.least_memory ||
            world_.memory.needed(its) < world_.memory.needed(world_.least_memory->figures))
          world_.least_memory = std::move(plan);
        break;
      case PlanFigures::Status::refused:
      case PlanFigures::Status::failed:
        ++(its.status == PlanFigures::Status::refused ? world_.refused : world_.failed);
        if (world_.first_failure.empty()) world_.first_failure = its.error;
        break;
    }
  }

  void finish() {
    std::vector<SimulatedPlan>& plans = world_.simulated;
    std::stable_sort(plans.begin(), plans.end(), is_faster);
    const std::int64_t tried =
        static_cast<std::int64_t>(plans.size()) + world_.too_large + world_.refused + world_.failed;
    const std::int64_t rest = world_.search->space().bounded - tried;
    (best_s_ < kNever ? world_.ruled_out_by_bound : world_.ruled_out_by_limit) = rest;
  }

  const SearchedWorld& world() const { return world_; }
  double best_s() const { return best_s_; }
  std::string best_in_words() const {
    const auto best = std::min_element(world_.simulated.begin(), world_.simulated.end(), is_faster);
    return best == world_.simulated.end() ? "" : in_words(best->candidate.plan);
  }

private:
  SearchedWorld& world_;
  const double share_;
  double best_s_ = kNever;
  std::int64_t end_ = std::numeric_limits<std::int64_t>::max();
  std::map<std::size_t, double> without_gradients_s_;        // by core: PlanFigures::without_gradients_s
  std::set<std::pair<std::size_t, std::size_t>> too_large_;  // cores, and holding_of() of their plans
};

// Returns the longest step that the limits on the entire training run allow; 0: no limit.
double most_step_s(const SearchedWorld& world, const PlanLimits& limits) {
  const Scenario& scenario = world.world.question.scenario;
  const double batch = scenario.training.global_batch;
  double most_s = kNever;
  if (limits.budget > 0 || limits.deadline_s > 0) {
    if (scenario.training.target_samples <= 0)
      throw InputError({limits.budget > 0 ? "--budget" : "--deadline"},
                       "is given, but the scenario does not say how long the training is; allowed: with "
                       "training.tokens, samples or epochs");
    const double steps = std::ceil(scenario.training.target_samples / batch);
    if (limits.deadline_s > 0) most_s = std::min(most_s, limits.deadline_s / steps);
    if (limits.budget > 0) {
      const std::optional<double> money = step_cost(world.rates, 1, 0).money;
      if (!money || *money <= 0)
        throw InputError({"--budget"},
                         fmt::format("is given, but the price of {} is not known; allowed: with {}",
                                     world.world.name, world.rates.missing_price));
      most_s = std::min(most_s, limits.budget / steps / *money);
    }
  }
  if (limits.least_mfu > 0) {
    const double peak = scenario.cluster->node()
                            .device.peak_flops[static_cast<std::size_t>(scenario.training.precision)]
                            .value;
    const double flops = batch * flops_per_sample(scenario.model, scenario.training.sequence_length);
    if (peak > 0) most_s = std::min(most_s, flops / scenario.cluster->devices() / peak / limits.least_mfu);
  }
  return most_s < kNever ? most_s : 0;
}

}  // namespace

SearchedWorld limited(PlanWorld world, const PlanLimits& limits) {
  SearchedWorld searched;
  searched.world = std::move(world);
  const Scenario& scenario = searched.world.question.scenario;
  searched.memory.capacity_bytes =
      scenario.cluster->node().device.memory_bytes.value * searched.world.memory_factor;
  searched.memory.reserve_bytes = limits.reserve_bytes;
  if (limits.reserve_share > 0)
    searched.memory.reserve_bytes = limits.reserve_share * searched.memory.capacity_bytes;
  searched.rates = operating_rates(*scenario.cluster, scenario.cost);
  searched.most_step_s = most_step_s(searched, limits);
  return searched;
}

void simulate(std::vector<SearchedWorld>& worlds, const PlanLimits& limits, int jobs, SharedResults* results,
              const std::function<void(const PlanProgress&)>& progress) {
  std::vector<WorldRun> runs;
  std::int64_t most = 0;
  PlanProgress now;
  for (SearchedWorld& world : worlds) {
    if (!world.world.searched) continue;
    const PlanQuestion& question = world.world.question;
    world.search = std::make_unique<PlanSearch>(
        question.scenario, limits.space,
        world.memory.capacity_bytes > 0 ? world.memory.capacity_bytes : kNever, world.memory.reserve_bytes,
        [&question](const CoreChoice& split) { return refusal(question, split); });
    runs.emplace_back(world, limits.tolerance);
    most = std::max(most, world.search->space().bounded);
    now.bounded += world.search->space().bounded;
    now.plans += world.search->space().plans;
    progress(now);
  }
  // The tasks are the plans of all worlds in turn: the first of each, the second of each, ...
  const auto count = static_cast<std::int64_t>(runs.size());
  const auto run_of = [&](std::int64_t task) -> WorldRun& {
    return runs[static_cast<std::size_t>(task % count)];
  };
  OrderedTasks tasks;
  tasks.jobs = jobs;
  tasks.count = most * count;
  tasks.results = results;
  tasks.wanted = [&](std::int64_t task) { return run_of(task).wanted(task / count); };
  tasks.work = [&](std::int64_t task) {
    const SearchedWorld& world = run_of(task).world();
    const Candidate& candidate = run_of(task).candidate(task / count);
    return to_line(simulate_plan(world.world.question, candidate.plan, world.memory,
                                 {limits.most_ops, candidate.bound_s}, Where::here));
  };
  tasks.taken = [&](const TaskEnd& end) {
    PlanFigures figures;
    if (end.failure.empty())
      figures = plan_figures(end.output);
    else
      figures.error = end.failure;
    WorldRun& run = run_of(end.task);
    run.take(end.task / count, std::move(figures));
    ++now.simulated;
    if (run.best_s() < kNever && (now.best_s == 0 || end.task % count == 0)) {
      now.best_s = runs.front().best_s() < kNever ? runs.front().best_s() : run.best_s();
      now.best = run.best_in_words();
    }
    progress(now);
  };
  run(tasks);
  for (WorldRun& run : runs) run.finish();
}

}  // namespace rehearse
