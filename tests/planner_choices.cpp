// Compares the planner with plans that people chose: their plans are in its space, and none is predicted to
// be faster than its best one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "models/text/read_text.hpp"
#include "models/text/text.hpp"
#include "simulator/commands/plan/plan_runs.hpp"
#include "simulator/commands/predicting/side_by_side.hpp"
#include "simulator/commands/validate/table.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"
#include "tests/planner_choices.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

// The defaults of `rehearse plan`.
constexpr double kTolerance = 0.005, kMostOps = 150'000;
// The times of one step, computed in two ways, differ only by rounding.
constexpr double kSame = 1e-6;

std::string scenario_text(const PeoplesChoice& choice) {
  if (choice.row.empty())
    return read_text_file(REHEARSE_TESTS_DIR "/../simulator/scenarios/" + choice.table, "scenario file");
  for (const PublishedRow& row : read_measurements(measurement_path(choice.table)).rows)
    if (row.id == choice.row) return row.scenario;
  throw InputError({choice.table}, "has no row " + choice.row);
}

// Checks whether the scenario has everything that a search chooses, except where stages are split and how
// gradients are reduced.
bool has_core(const Scenario& scenario, const CoreChoice& core) {
  const StrategyChoice& s = scenario.strategy;
  const Training& t = scenario.training;
  return core.tensor == s.tensor && core.context == s.context && core.pipeline == s.pipeline &&
         core.data == s.data && core.sequence_parallel == (s.tensor > 1 && s.sequence_parallel) &&
         core.micro_batch == t.micro_batch && core.recompute == t.recompute &&
         core.recompute_layers == t.recompute_layers &&
         (core.pipeline == 1 || (core.schedule == s.schedule && core.virtual_stages == s.virtual_stages));
}

// A finished search. Cannot be copied, since it refers to its own limits and world.
struct Search {
  PlanLimits limits;
  std::vector<SearchedWorld> worlds;

  Search(const PlanQuestion& question, const SpaceLimits& space, double memory_factor) {
    limits.space = space;
    limits.tolerance = kTolerance;
    limits.most_ops = kMostOps;
    PlanWorld world;
    world.question = question;
    world.memory_factor = memory_factor;
    worlds.push_back(limited(std::move(world), limits));
    simulate(worlds, limits, processors(), nullptr, [](const PlanProgress&) {});
  }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  SearchedWorld& world() { return worlds.front(); }
  const SimulatedPlan& best() { return world().simulated.front(); }
  double plans() { return static_cast<double>(world().search->space().bounded); }
};

// People's plan, and the search for a better one in the space that they could choose from.
struct Comparison {
  Scenario theirs;
  double theirs_s = 0;
  PlanQuestion question;
  Search search;
  std::vector<PlanChoice> below;  // with bounds below theirs_s; no other plan is faster

  explicit Comparison(const PeoplesChoice& choice)
      : theirs(read_scenario_text(scenario_text(choice), choice.name, choice.sets)),
        theirs_s(predict(theirs, Where::child).metrics.step_time_s),
        question(plan_question(scenario_text(choice), choice.name, choice.sets)),
        search(question, choice.limits, choice.memory_factor) {
    for (std::size_t i = 0; const Candidate* candidate = search.world().search->candidate(i); ++i) {
      if (candidate->bound_s > theirs_s * (1 + kSame)) break;
      below.push_back(candidate->plan);
    }
  }
  PlanFigures figures(const PlanChoice& plan) {
    return simulate_plan(question, plan, search.world().memory, {kMostOps, 0}, Where::child);
  }
  double gain() { return search.best().figures.step_time_s / theirs_s - 1; }
  double could_be_faster() { return static_cast<double>(below.size()) / search.plans(); }
  // Estimates the share of the plans that are faster from `sample` evenly spaced ones of those that could be.
  double faster(std::size_t sample) {
    sample = std::min(sample, below.size());
    int count = 0;
    for (std::size_t i = 0; i < sample; ++i) {
      const PlanFigures its = figures(below[i * below.size() / sample]);
      count += its.status == PlanFigures::Status::ok && its.step_time_s < theirs_s * (1 - kSame);
    }
    return sample > 0 ? could_be_faster() * count / static_cast<double>(sample) : 0;
  }
  // Returns the smallest relative difference in step time between their plan and the plans in `below` with
  // the same core; 1 if there is none.
  double distance() {
    double least = 1;
    for (const PlanChoice& plan : below) {
      if (!has_core(theirs, plan.core)) continue;
      const PlanFigures its = figures(plan);
      if (its.status == PlanFigures::Status::ok)
        least = std::min(least, std::abs(its.step_time_s / theirs_s - 1));
    }
    return least;
  }
};

std::string best_in_words(Search& search) {
  return fmt::format("{}: {}, {:.0f} GiB", human_time_s(search.best().figures.step_time_s),
                     in_words(search.best().candidate.plan),
                     search.world().memory.needed(search.best().figures) / 1073741824.0);
}

}  // namespace

TEST_CASE("the best plan is no slower than what people chose", "[planner][release]") {
  for (const PeoplesChoice& choice : peoples_choices()) {
    if (!choice.quick) continue;
    INFO(choice.name);
    Comparison comparison(choice);
    REQUIRE(!comparison.search.world().simulated.empty());
    INFO(best_in_words(comparison.search));
    CHECK(comparison.distance() < kSame);
    CHECK(comparison.search.best().figures.step_time_s * (1 - kTolerance) <= comparison.theirs_s);
  }
}

// Takes minutes: build/bin/test_planner "[choices]" prints a Markdown table with a row for each choice.
// CHOICE=TEXT in the environment selects the choices whose names contain TEXT.
TEST_CASE("what people chose and the best plans", "[.][choices]") {
  constexpr std::size_t kSample = 48;
  const char* part = std::getenv("CHOICE");
  fmt::print(
      "| chosen | its step | best within the limits of the time | gain | faster | could be faster, of | "
      "best of all | gain |\n|---|---|---|---|---|---|---|---|\n");
  for (const PeoplesChoice& choice : peoples_choices()) {
    if (part && choice.name.find(part) == std::string::npos) continue;
    Comparison c(choice);
    CAPTURE(choice.name);
    REQUIRE(!c.search.world().simulated.empty());
    CHECK(c.distance() < kSame);
    CHECK(c.gain() <= kTolerance);
    fmt::print("| {} | {} | {} | {:+.1f} % | {:.1f} % | {:.1f} % of {} |", choice.name,
               human_time_s(c.theirs_s), best_in_words(c.search), 100 * c.gain(), 100 * c.faster(kSample),
               100 * c.could_be_faster(), c.search.plans());
    std::fflush(stdout);
    Search all(c.question, {}, choice.memory_factor);
    fmt::print(" {} | {:+.1f} % |\n", best_in_words(all),
               100 * (all.best().figures.step_time_s / c.theirs_s - 1));
    std::fflush(stdout);
  }
}
