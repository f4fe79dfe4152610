// Compares the search for the best plan with the simulation of every plan of its space.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "simulator/commands/plan/plan_runs.hpp"
#include "simulator/commands/tasks/shared_results.hpp"
#include "simulator/commands/tasks/task_pool.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/planner_optimal_cases.hpp"
#include "tests/planner_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;
using rehearse::test::Scratch;

namespace {

constexpr double kRounding = 1e-9;

struct WholePlan {
  PlanChoice plan;
  double bound_s = 0, bound_bytes = 0;
  PlanFigures figures;
};

std::string key_of(const PlanChoice& plan, const Model& model) {
  return fmt::format("{}", settings_of(plan, model));
}

// Returns every plan of the space once, with its bounds; leaves out splits that the model does not allow.
std::vector<WholePlan> whole_space(const PlanQuestion& question, const SpaceLimits& limits,
                                   std::optional<double> reserve_bytes) {
  const Scenario& scenario = question.scenario;
  PlanBounds bounds(scenario, reserve_bytes);
  std::vector<WholePlan> plans;
  std::set<std::string> seen;
  const auto most = [&](const CoreChoice& core) { return bounds.most_recomputed(core); };
  for (const CoreChoice& split : splits(scenario, limits)) {
    if (!refusal(question, split).empty()) continue;
    for (const CoreChoice& pipeline : pipelines(scenario, split, bounds.layers(), limits))
      for (const CoreChoice& core : recomputations(scenario, pipeline, most, limits)) {
        if (!bounds.refusal(core).empty()) continue;
        PlanChoice plan;
        plan.core = core;
        if (core.pipeline > 1) plan.stage_layers = bounds.stage_layers(core);
        if (core.pipeline > 1 && plan.stage_layers.empty()) continue;
        const CoreBound bound = bounds.core_bound(core);
        const PlanBounds::WalkedCore walked = bounds.walk(core);
        for (const GradientChoice& gradients : gradient_choices(scenario, core, limits)) {
          plan.gradients = gradients;
          if (!seen.insert(key_of(plan, scenario.model)).second) continue;
          plans.push_back({plan,
                           std::max(bound.seconds, bounds.plan_bound_s(walked, gradients)),
                           bound.bytes[holding_of(gradients)],
                           {}});
        }
      }
  }
  return plans;
}

void simulate_all(const PlanQuestion& question, std::vector<WholePlan>& plans) {
  TaskPool pool;
  pool.jobs = 2;
  std::int64_t next = 0;
  pool.next = [&] { return next < static_cast<std::int64_t>(plans.size()) ? next++ : -1; };
  pool.work = [&](std::int64_t task) {
    return to_line(simulate_plan(question, plans[static_cast<std::size_t>(task)].plan, {}, {}, Where::here));
  };
  pool.ended = [&](const TaskEnd& end) {
    PlanFigures& figures = plans[static_cast<std::size_t>(end.task)].figures;
    if (end.failure.empty())
      figures = plan_figures(end.output);
    else
      figures.error = end.failure;
  };
  pool.tick = [] {};
  run(pool);
}

// Runs the search with figures that are already known, which it finds as shared results under the candidates'
// numbers.
SearchedWorld searched(const PlanQuestion& question, const PlanLimits& limits,
                       const std::vector<WholePlan>& plans, double tolerance) {
  std::vector<SearchedWorld> worlds;
  PlanLimits asked = limits;
  asked.tolerance = tolerance;
  worlds.push_back(limited(world_of(question), asked));
  const Scratch scratch;
  SharedResults results(scratch.path("results"), "plans");
  std::map<std::string, const WholePlan*> known;
  for (const WholePlan& plan : plans) known[key_of(plan.plan, question.scenario.model)] = &plan;
  const MemoryLimit& memory = worlds.front().memory;
  PlanSearch search(question.scenario, limits.space, memory.capacity_bytes, memory.reserve_bytes,
                    [&](const CoreChoice& split) { return refusal(question, split); });
  for (std::size_t number = 0; const Candidate* candidate = search.candidate(number); ++number) {
    const auto found = known.find(key_of(candidate->plan, question.scenario.model));
    INFO(in_words(candidate->plan));
    REQUIRE(found != known.end());
    PlanFigures figures = found->second->figures;
    if (figures.status == PlanFigures::Status::ok && !memory.fits(figures))
      figures.status = PlanFigures::Status::too_large;
    results.add(static_cast<std::int64_t>(number), to_line(figures));
  }
  simulate(worlds, asked, 1, &results, [](const PlanProgress&) {});
  return std::move(worlds.front());
}

void check_case(const OptimalCase& c) {
  const PlanQuestion question = plan_question(c.text(), "case.toml", {});
  PlanLimits limits;
  limits.space = c.limits;
  if (c.memory_mib > 0) limits.reserve_bytes = 0;
  const MemoryLimit memory = limited(world_of(question), limits).memory;
  std::vector<WholePlan> plans = whole_space(question, limits.space, limits.reserve_bytes);
  CHECK(plans.size() >= 30);
  CHECK(plans.size() <= 300);
  simulate_all(question, plans);

  const WholePlan* best = nullptr;
  std::map<std::string, double> core_best_s;  // plans with the same core differ only in their gradients
  std::size_t fitting = 0, possible = 0;
  for (const WholePlan& plan : plans) {
    INFO(in_words(plan.plan));
    const PlanFigures& figures = plan.figures;
    CHECK(figures.error == "");
    if (figures.status != PlanFigures::Status::ok) continue;
    ++possible;
    CHECK(plan.bound_s <= figures.step_time_s * (1 + kRounding));
    CHECK(plan.bound_bytes <= memory.needed(figures) * (1 + kRounding));
    if (!memory.fits(figures)) continue;
    ++fitting;
    if (!best || figures.step_time_s < best->figures.step_time_s) best = &plan;
  }
  REQUIRE(best != nullptr);
  if (c.memory_mib > 0) CHECK(fitting < possible);
  INFO("the best: " << in_words(best->plan));
  const double best_s = best->figures.step_time_s;
  for (const double tolerance : {0.0, 0.005}) {
    INFO("tolerance " << tolerance);
    const SearchedWorld world = searched(question, limits, plans, tolerance);
    REQUIRE(!world.simulated.empty());
    INFO("found: " << in_words(world.simulated.front().candidate.plan));
    const double found_s = world.simulated.front().figures.step_time_s;
    CHECK(found_s >= best_s);
    CHECK(found_s * (1 - tolerance) <= best_s * (1 + kRounding));
    CHECK(memory.fits(world.simulated.front().figures));
  }
}

constexpr std::size_t kEach = 10;  // every kEach-th case is checked in each test run

}  // namespace

TEST_CASE("the search finds the best of all plans", "[planner][release]") {
  for (std::size_t i = 0; i < std::size(kOptimalCases); i += kEach) {
    INFO(fmt::format("case {}:\n{}", i, kOptimalCases[i].text()));
    check_case(kOptimalCases[i]);
  }
}

TEST_CASE("the search finds the best plan in all cases", "[.][exhaustive]") {
  static_assert(std::size(kOptimalCases) == 60);
  for (std::size_t i = 0; i < std::size(kOptimalCases); ++i) {
    INFO(fmt::format("case {}:\n{}", i, kOptimalCases[i].text()));
    check_case(kOptimalCases[i]);
  }
}
