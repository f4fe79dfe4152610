#include "simulator/commands/plan/plan_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "models/text/text.hpp"
#include "simulator/commands/tasks/ordered_tasks.hpp"
#include "simulator/report/format.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {
namespace {

constexpr std::int64_t kFirstFurtherTask = std::int64_t{1} << 40;  // after all plans of the search
constexpr std::int64_t kOwnTask = std::int64_t{1} << 41, kFirstExamination = std::int64_t{1} << 42;
constexpr std::size_t kExamined = 3;  // plans whose uncertainty is reported
// A bound so far below every step that simulate_plan() does not check whether steps grow evenly.
constexpr double kUnchecked = std::numeric_limits<double>::min();
constexpr std::size_t kMostNear = 3;
// The number of runners-up that are simulated, and of the plans among which they are sought.
constexpr std::size_t kRunnersUp = 3, kTriedRunnersUp = 1500;
// Plans whose memory bound is below this share of a device's memory are taken to fit: a bound leaves out
// little.
constexpr double kSurelyFits = 0.96;
// The shares of a device's memory for which the fastest plan is sought.
constexpr std::array kMemoryShares = {0.75, 0.5, 0.25};

AnsweredPlan answered(const SearchedWorld& world, std::size_t number, const PlanChoice& plan,
                      PlanFigures figures) {
  AnsweredPlan answer;
  const Scenario& scenario = world.world.question.scenario;
  answer.world = number;
  answer.plan = plan;
  answer.words = in_words(plan);
  answer.settings = world.world.settings;
  for (auto& setting : settings_of(plan, scenario.model)) answer.settings.push_back(std::move(setting));
  answer.basis = figures.simulated_microbatches > 0 ? PlanBasis::extended : PlanBasis::simulated;
  answer.capacity_bytes = world.memory.capacity_bytes;
  answer.fits = world.memory.fits(figures);
  answer.samples = scenario.training.global_batch;
  answer.devices = scenario.cluster->devices();
  const double step_s = figures.step_time_s;
  answer.cost = step_cost(world.rates, step_s, step_s > 0 ? std::min(1.0, figures.compute_s / step_s) : 0);
  if (scenario.training.target_samples > 0)
    answer.training =
        training_cost(world.rates, answer.cost, step_s, answer.samples, scenario.training.target_samples);
  answer.figures = std::move(figures);
  return answer;
}

double value_of(const AnsweredPlan& plan, PlanObjective objective) {
  const auto known = [](const std::optional<double>& value) {
    return value ? *value : std::numeric_limits<double>::infinity();
  };
  switch (objective) {
    case PlanObjective::time:
      return plan.figures.step_time_s / plan.samples;
    case PlanObjective::cost:
      return known(plan.cost.money) / plan.samples;
    case PlanObjective::energy:
      return known(plan.cost.energy_wh) / plan.samples;
  }
  return 0;
}

// Names the part of a device's step that grows most: "1.4 s more of the pipeline's bubble"; empty if none
// grows.
std::string loss(const AnsweredPlan& plan, const AnsweredPlan& best) {
  if (plan.world != best.world) return "";
  const PlanFigures &its = plan.figures, &least = best.figures;
  const std::array<std::pair<const char*, double>, 4> parts = {
      {{"computing", its.compute_s - least.compute_s},
       {"waiting for communication", its.communication_s - least.communication_s},
       {"the pipeline's bubble", its.bubble_s - least.bubble_s},
       {"waiting for other ranks", its.other_s - least.other_s}}};
  const auto most = std::max_element(parts.begin(), parts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most->second <= 0) return "";
  return fmt::format("{} more of {}", human_time_s(most->second), most->first);
}

// A plan beyond those that the search had to simulate: a small one, a runner-up with other degrees, or one
// that fits where a similar one does not.
struct FurtherPlan {
  std::size_t world = 0;
  PlanChoice plan;
};

// Returns tasks that are all wanted.
OrderedTasks tasks_from(std::int64_t first, std::size_t count, int jobs, SharedResults* results) {
  OrderedTasks tasks;
  tasks.jobs = jobs;
  tasks.count = static_cast<std::int64_t>(count);
  tasks.first = first;
  tasks.wanted = [](std::int64_t) { return true; };
  tasks.results = results;
  return tasks;
}

// Simulates the plans; leaves out those that cannot be simulated or do not fit.
std::vector<AnsweredPlan> simulated(const std::vector<SearchedWorld>& worlds,
                                    const std::vector<FurtherPlan>& plans, const PlanLimits& limits, int jobs,
                                    SharedResults* results) {
  std::vector<AnsweredPlan> answers;
  OrderedTasks tasks = tasks_from(kFirstFurtherTask, plans.size(), jobs, results);
  tasks.work = [&](std::int64_t task) {
    const FurtherPlan& its = plans[static_cast<std::size_t>(task)];
    const SearchedWorld& world = worlds[its.world];
    // With a slow node, the memory that plans need does not matter.
    return to_line(simulate_plan(world.world.question, its.plan,
                                 world.world.searched ? world.memory : MemoryLimit{},
                                 {limits.most_ops, kUnchecked}, Where::here));
  };
  tasks.taken = [&](const TaskEnd& end) {
    if (!end.failure.empty()) return;
    const FurtherPlan& its = plans[static_cast<std::size_t>(end.task)];
    PlanFigures figures = plan_figures(end.output);
    if (figures.status == PlanFigures::Status::ok)
      answers.push_back(answered(worlds[its.world], its.world, its.plan, std::move(figures)));
  };
  run(tasks);
  return answers;
}

bool same_degrees(const CoreChoice& a, const CoreChoice& b) {
  return a.tensor == b.tensor && a.context == b.context && a.pipeline == b.pipeline && a.expert == b.expert;
}

// Adds the first plans by their bounds, one for each way to split the model.
void add_runners_up(std::vector<FurtherPlan>& further, SearchedWorld& world, std::size_t number) {
  std::vector<const CoreChoice*> seen;
  for (const SimulatedPlan& plan : world.simulated) seen.push_back(&plan.candidate.plan.core);
  const std::size_t most = seen.size() + kRunnersUp;
  for (std::size_t i = 0; i < kTriedRunnersUp && seen.size() < most; ++i) {
    const Candidate* candidate = world.search->candidate(i);
    if (!candidate) return;
    if (candidate->bound_bytes > kSurelyFits * world.memory.capacity_bytes ||
        std::any_of(seen.begin(), seen.end(),
                    [&](const CoreChoice* other) { return same_degrees(*other, candidate->plan.core); }))
      continue;
    further.push_back({number, candidate->plan});
    seen.push_back(&candidate->plan.core);
  }
}

// Returns whether a is below b by more than rounding.
bool less(double a, double b) {
  return a < b * (1 - 1e-12);
}

// Returns whether the other plan is at least as good in all figures, and better in one.
bool dominated(const AnsweredPlan& plan, const AnsweredPlan& other) {
  const auto figures = [](const AnsweredPlan& p) {
    return std::array{p.figures.step_time_s / p.samples, p.figures.memory_bytes,
                      p.cost.money.value_or(0) / p.samples};
  };
  const auto its = figures(plan), theirs = figures(other);
  bool better = false;
  for (std::size_t i = 0; i < its.size(); ++i) {
    if (less(its[i], theirs[i])) return false;
    better = better || less(theirs[i], its[i]);
  }
  return better;
}

// Adds plans that could be faster than the best one if they fitted. For each of them, adds the fastest plan
// with its degrees that does fit to `further`, to be simulated.
void add_near(PlanAnswer& answer, SearchedWorld& world, std::size_t number,
              std::vector<FurtherPlan>& further) {
  std::vector<CoreChoice> seen;
  for (const Candidate& candidate : world.search->nearly_fitting()) {
    if (answer.near.size() == kMostNear) return;
    const CoreChoice& core = candidate.plan.core;
    if (candidate.bound_s >= (1 - answer.tolerance) * world.simulated.front().figures.step_time_s ||
        std::any_of(seen.begin(), seen.end(),
                    [&](const CoreChoice& other) { return same_degrees(other, core); }))
      continue;
    seen.push_back(core);
    NearPlan near;
    near.core = core;
    near.words = in_words(candidate.plan);
    near.settings = settings_of(candidate.plan, world.world.question.scenario.model);
    near.least_step_s = candidate.bound_s;
    near.least_bytes = candidate.bound_bytes;
    near.capacity_bytes = world.memory.capacity_bytes;
    if (const auto fitting = world.search->fastest_within(kSurelyFits * world.memory.capacity_bytes, &core))
      further.push_back({number, fitting->plan});
    answer.near.push_back(std::move(near));
  }
}

// Sets the fastest simulated plan with the degrees of one that nearly fits.
void take_fitting(NearPlan& near, const std::vector<AnsweredPlan>& plans, std::size_t world) {
  const AnsweredPlan* fitting = nullptr;
  for (const AnsweredPlan& plan : plans)
    if (plan.world == world && same_degrees(plan.plan.core, near.core) &&
        (!fitting || plan.figures.step_time_s < fitting->figures.step_time_s))
      fitting = &plan;
  if (!fitting) return;
  near.fitting_step_s = fitting->figures.step_time_s;
  for (const auto& setting : fitting->settings)
    if (setting.first != "strategy.stage_layers" &&
        std::find(near.settings.begin(), near.settings.end(), setting) == near.settings.end())
      near.sets.push_back(fmt::format("{}={}", setting.first, setting.second));
}

void add_space(PlanAnswer& answer, const SearchedWorld& world) {
  const SearchedSpace& space = world.search->space();
  answer.space += space.plans + space.impossible;
  answer.impossible += space.impossible;
  answer.too_large += space.too_large + world.too_large;
  answer.slower += world.ruled_out_by_bound;
  answer.beyond_limits += world.ruled_out_by_limit;
  answer.bounded += space.bounded;
  answer.simulated += static_cast<std::int64_t>(world.simulated.size());
  answer.failed += world.refused + world.failed;
  if (answer.first_failure.empty()) answer.first_failure = world.first_failure;
}

// Explains why a world has no plan: for example, the least memory that a plan would need.
void add_binding(PlanAnswer& answer, SearchedWorld& world) {
  const std::string& name = world.world.name;
  const SearchedSpace& space = world.search->space();
  if (space.plans == 0) {
    answer.binding.push_back(
        fmt::format("{}: no plan divides the devices, the model and the global batch{}", name,
                    space.refusals.empty() ? "" : "; the first refusal: " + space.refusals.front()));
    return;
  }
  if (!world.simulated.empty()) {
    answer.binding.push_back(fmt::format("{}: the fastest plan takes {} a step; the constraints allow {}",
                                         name, human_time_s(world.simulated.front().figures.step_time_s),
                                         human_time_s(world.most_step_s)));
    return;
  }
  if (space.bounded > 0 && world.ruled_out_by_limit > 0 && !world.least_memory) {
    answer.binding.push_back(fmt::format("{}: no plan takes less than {} a step; the constraints allow {}",
                                         name, human_time_s(world.search->candidate(0)->bound_s),
                                         human_time_s(world.most_step_s)));
    return;
  }
  if (!world.least_memory && world.search->nearly_fitting().empty()) {
    answer.binding.push_back(
        fmt::format("{}: no plan could be simulated; the first failure: {}", name, world.first_failure));
    return;
  }
  double least = std::numeric_limits<double>::infinity();
  std::string words;
  if (world.least_memory) {
    least = world.memory.needed(world.least_memory->figures);
    words = in_words(world.least_memory->candidate.plan);
  }
  for (const Candidate& candidate : world.search->nearly_fitting())
    if (candidate.bound_bytes < least) {
      least = candidate.bound_bytes;
      words = in_words(candidate.plan);
    }
  answer.binding.push_back(
      fmt::format("{}: memory. The smallest plan ({}) needs {} GiB on a device with {} GiB, {} GiB too much",
                  name, words, in_gibibytes(least), in_gibibytes(world.memory.capacity_bytes),
                  in_gibibytes(least - world.memory.capacity_bytes)));
}

// Adds the intervals of the first plans, and which of them cannot be distinguished from the best one.
void add_uncertainty(PlanAnswer& answer, const std::vector<SearchedWorld>& worlds, int jobs,
                     SharedResults* results) {
  std::vector<std::size_t> examined;
  for (std::size_t i = 0; i < answer.plans.size() && examined.size() < kExamined; ++i) {
    const CoreChoice& core = answer.plans[i].plan.core;
    if (std::none_of(examined.begin(), examined.end(), [&](std::size_t other) {
          return answer.plans[other].world == answer.plans[i].world && answer.plans[other].plan.core == core;
        }))
      examined.push_back(i);
  }
  std::map<std::size_t, std::vector<PlanEffect>> effects;
  OrderedTasks tasks = tasks_from(kFirstExamination, examined.size(), jobs, results);
  const auto plan_of = [&](std::int64_t task) -> AnsweredPlan& {
    return answer.plans[examined[static_cast<std::size_t>(task)]];
  };
  tasks.work = [&](std::int64_t task) {
    const AnsweredPlan& plan = plan_of(task);
    try {
      return to_line(plan_effects(worlds[plan.world].world.question, plan.plan));
    } catch (const std::exception&) {
      return std::string("[]");
    }
  };
  tasks.taken = [&](const TaskEnd& end) {
    if (!end.failure.empty()) return;
    std::vector<PlanEffect> its = plan_effects(end.output);
    if (its.empty()) return;
    AnsweredPlan& plan = plan_of(end.task);
    plan.interval_s = interval_s(plan.figures.step_time_s, its);
    effects[examined[static_cast<std::size_t>(end.task)]] = std::move(its);
  };
  run(tasks);
  const auto best = effects.find(0);
  if (best == effects.end()) return;
  const AnsweredPlan& first = answer.plans.front();
  for (const auto& [number, its] : effects) {
    const AnsweredPlan& second = answer.plans[number];
    if (number == 0 || second.world != first.world) continue;
    PlanDecision decision = decide(worlds[first.world].world.question, first.plan, first.figures.step_time_s,
                                   best->second, second.figures.step_time_s, its);
    if (decision.open()) answer.open.push_back({0, number, std::move(decision)});
  }
}

// Returns the scenario's own plan, simulated; nullopt if it cannot be read or simulated.
std::optional<AnsweredPlan> own_plan(const PlanArguments& arguments, const SearchedWorld& world,
                                     SharedResults* results) {
  const PlanQuestion& question = world.world.question;
  const auto read = [&] { return read_scenario_text(arguments.text, question.path, arguments.overrides); };
  try {
    if (read().cluster->devices() != question.scenario.cluster->devices()) return std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
  std::optional<AnsweredPlan> own;
  OrderedTasks tasks = tasks_from(kOwnTask, 1, 1, results);
  tasks.work = [&](std::int64_t) {
    PlanFigures figures;
    try {
      figures = figures_of(predict(read(), Where::here));
    } catch (const std::exception& error) {
      figures.error = error.what();  // the status stays `failed`
    }
    return to_line(figures);
  };
  tasks.taken = [&](const TaskEnd& end) {
    if (!end.failure.empty()) return;
    PlanFigures figures = plan_figures(end.output);
    if (figures.status != PlanFigures::Status::ok) return;
    own = answered(world, 0, {}, std::move(figures));
    const Scenario scenario = read();
    own->words = degrees_text(scenario.strategy);
    own->settings = scenario.settings;
    own->ignored = scenario.ignored;
  };
  run(tasks);
  return own;
}

// Returns the simulated plans that satisfy the limits.
std::vector<AnsweredPlan> searched_plans(PlanAnswer& answer, const std::vector<SearchedWorld>& worlds) {
  std::vector<AnsweredPlan> plans;
  for (std::size_t w = 0; w < worlds.size(); ++w) {
    const SearchedWorld& world = worlds[w];
    if (world.world.what_if) continue;
    answer.worlds.push_back(world.world.name);
    add_space(answer, world);
    for (const SimulatedPlan& plan : world.simulated)
      if (world.allows(plan.figures.step_time_s))
        plans.push_back(answered(world, w, plan.candidate.plan, plan.figures));
  }
  return plans;
}

// Returns plans that are not needed to find the best one: alternatives to it, and the best plan itself in
// worlds that are not searched.
std::vector<FurtherPlan> further_plans(PlanAnswer& answer, std::vector<SearchedWorld>& worlds,
                                       const AnsweredPlan& best, int top) {
  std::vector<FurtherPlan> further;
  SearchedWorld& world = worlds[best.world];
  if (top > 1) {
    for (const double share : kMemoryShares)
      if (const auto small = world.search->fastest_within(share * world.memory.capacity_bytes))
        further.push_back({best.world, small->plan});
    add_runners_up(further, world, best.world);
    add_near(answer, world, best.world, further);
  }
  // What-ifs change the first world, where a plan of another world may be impossible.
  for (std::size_t w = 0; w < worlds.size(); ++w)
    if (!worlds[w].world.searched && best.world == 0) further.push_back({w, best.plan});
  return further;
}

// Selects from plans in the order of the objective: the best of each world, the Pareto front, and then others
// until there are `top`.
std::vector<AnsweredPlan> kept_plans(std::vector<AnsweredPlan> all, std::size_t worlds, int top) {
  std::vector<bool> kept(all.size(), false), seen(worlds, false);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool first = !seen[all[i].world];
    seen[all[i].world] = true;
    kept[i] = first || std::none_of(all.begin(), all.end(),
                                    [&](const AnsweredPlan& other) { return dominated(all[i], other); });
  }
  auto count = static_cast<int>(std::count(kept.begin(), kept.end(), true));
  std::vector<AnsweredPlan> plans;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!kept[i] && count >= top) continue;
    count += kept[i] ? 0 : 1;
    plans.push_back(std::move(all[i]));
  }
  return plans;
}

ChangedWorld changed_world(const SearchedWorld& world, std::size_t number, const AnsweredPlan* same_plan,
                           const PlanAnswer& answer) {
  ChangedWorld changed{world.world.name, std::nullopt, false};
  if (same_plan) {
    changed.best = *same_plan;
    changed.same_plan = true;
  } else if (!world.simulated.empty()) {
    const SimulatedPlan& best = world.simulated.front();
    changed.best = answered(world, number, best.candidate.plan, best.figures);
    changed.same_plan = !answer.plans.empty() && answer.plans.front().plan == best.candidate.plan;
  }
  return changed;
}

}  // namespace

PlanAnswer plan_answer(const PlanArguments& arguments, std::vector<SearchedWorld>& worlds,
                       const PlanLimits& limits, int jobs, SharedResults* results) {
  PlanAnswer answer;
  const Scenario& scenario = worlds.front().world.question.scenario;
  answer.scenario = scenario.name;
  answer.model = scenario.model.title;
  answer.framework = scenario.framework.name;
  answer.objective = kPlanObjectiveNames[static_cast<std::size_t>(arguments.objective)];
  answer.currency = scenario.cost.currency;
  answer.sample_unit = scenario.model.sample_unit;
  answer.devices = device_noun(scenario.cluster->node().device) + "s";
  answer.tolerance = limits.tolerance;
  answer.own = own_plan(arguments, worlds.front(), results);

  std::vector<AnsweredPlan> all = searched_plans(answer, worlds);
  std::map<std::size_t, AnsweredPlan> unsearched;  // the best plan in worlds that are not searched
  const auto better = [&](const AnsweredPlan& a, const AnsweredPlan& b) {
    return value_of(a, arguments.objective) < value_of(b, arguments.objective);
  };
  const bool possible = !all.empty();
  if (possible) {
    const AnsweredPlan best = *std::min_element(all.begin(), all.end(), better);
    const std::vector<FurtherPlan> further = further_plans(answer, worlds, best, arguments.top);
    for (AnsweredPlan& plan : simulated(worlds, further, limits, jobs, results)) {
      const SearchedWorld& world = worlds[plan.world];
      const auto is_same = [&](const AnsweredPlan& other) {
        return other.world == plan.world && other.plan == plan.plan;
      };
      if (world.world.what_if) {
        unsearched.emplace(plan.world, std::move(plan));
      } else if (world.allows(plan.figures.step_time_s) && std::none_of(all.begin(), all.end(), is_same)) {
        all.push_back(std::move(plan));
        ++answer.simulated;
        --answer.slower;
      }
    }
    for (NearPlan& near : answer.near) take_fitting(near, all, best.world);
  }
  std::stable_sort(all.begin(), all.end(), better);

  answer.plans = kept_plans(std::move(all), worlds.size(), arguments.top);
  const auto slower_than_best = [&](const AnsweredPlan& plan) {
    return value_of(plan, arguments.objective) / value_of(answer.plans.front(), arguments.objective) - 1;
  };
  if (answer.own && possible) answer.own->slower = slower_than_best(*answer.own);
  for (std::size_t i = 0; i < answer.plans.size(); ++i) {
    AnsweredPlan& plan = answer.plans[i];
    plan.slower = slower_than_best(plan);
    plan.ignored = scenario_of(worlds[plan.world].world.question, plan.plan).ignored;
    if (i > 0) plan.why = loss(plan, answer.plans.front());
    if (std::none_of(answer.plans.begin(), answer.plans.end(),
                     [&](const AnsweredPlan& other) { return dominated(plan, other); }))
      answer.pareto.push_back(i);
  }
  if (possible) add_uncertainty(answer, worlds, jobs, results);
  for (std::size_t w = 0; w < worlds.size(); ++w) {
    if (!worlds[w].world.what_if) {
      if (!possible) add_binding(answer, worlds[w]);
      continue;
    }
    const auto same = unsearched.find(w);
    answer.changed.push_back(
        changed_world(worlds[w], w, same == unsearched.end() ? nullptr : &same->second, answer));
  }
  return answer;
}

}  // namespace rehearse
