// Checks the advice for random plans of the planner's space: changes that are told make no step longer, and
// where the planner finds a much faster plan, they gain a part of that.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "simulator/commands/predicting/predict.hpp"
#include "simulator/commands/simulate/tried_remedies.hpp"
#include "simulator/remedies/remedy.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"
#include "tests/planner_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr std::size_t kFirst = 6;  // plans in the order of their bounds, among which is nearly the best one
constexpr double kExtrapolated = 0.01;  // error of a step of which only a few micro-batches were simulated
constexpr double kMuchFaster = 0.15, kLeastFound = 0.05;
constexpr std::uint64_t kWorstPlans = 4000;

struct Found {
  int scenarios = 0, much_faster = 0, with_advice = 0;
};

double best_samples_per_s(const PlanQuestion& question, PlanSearch& search, const MemoryLimit& memory) {
  double best = 0;
  for (std::size_t number = 0; number < kFirst; ++number) {
    const Candidate* candidate = search.candidate(number);
    if (!candidate) break;
    const PlanFigures figures = simulate_plan(question, candidate->plan, memory, {}, Where::child);
    if (figures.status == PlanFigures::Status::ok) best = std::max(best, figures.samples_per_s);
  }
  return best;
}

void check_told(const Prediction& base) {
  for (const TriedRemedy& told : *base.remedies) {
    INFO(fmt::format("{}", fmt::join(told.sets, " ")));
    const Prediction changed =
        predict(read_scenario_text(base.scenario.text, base.scenario.name, told.sets), Where::child);
    CHECK(changed.metrics.samples_per_s > base.metrics.samples_per_s);
    CHECK(told.samples_per_s == Approx(changed.metrics.samples_per_s).epsilon(kExtrapolated));
    CHECK(told.gain == Approx(1 - base.metrics.samples_per_s / told.samples_per_s).epsilon(1e-9));
    CHECK(changed.metrics.memory.fits);
    CHECK(!needs_what_is_lacking(told.sets, base.scenario.strategy.lacks));
  }
}

// Tries plans of one case; returns how often its advice found a part of what the planner finds.
Found advise(const PlannerCase& c, int plans, std::uint64_t seed) {
  INFO(c.name);
  Found found;
  const PlanQuestion question = question_of(c);
  const double capacity = question.scenario.cluster->node().device.memory_bytes.value;
  const MemoryLimit memory{capacity, std::nullopt};
  const SpaceLimits limits;
  PlanSearch search = search_of(question, limits, capacity);
  const double best = best_samples_per_s(question, search, memory);
  std::mt19937_64 random(seed);
  for (int i = 0; i < plans; ++i) {
    const std::uint64_t number =
        random() % std::min(static_cast<std::uint64_t>(search.space().bounded), kWorstPlans);
    const Candidate* candidate = search.candidate(number);
    if (!candidate) continue;
    INFO(fmt::format("plan {}: {}", number, in_words(candidate->plan)));
    if (simulate_plan(question, candidate->plan, memory, {}, Where::child).status != PlanFigures::Status::ok)
      continue;
    Prediction base = predict(
        read_scenario_text(scenario_file_text(question, candidate->plan, ""), "random.toml"), Where::child);
    if (!base.metrics.memory.fits) continue;
    try_remedies(base, 2);
    if (!base.remedies) continue;
    ++found.scenarios;
    check_told(base);
    const double gained = base.remedies->empty() ? 0 : base.remedies->front().gain;
    if (1 - base.metrics.samples_per_s / best < kMuchFaster) continue;
    ++found.much_faster;
    if (gained >= kLeastFound)
      ++found.with_advice;
    else
      WARN(fmt::format("{}: plan {} ({}): the planner finds {:.1f} %, the advice {:.1f} %", c.name, number,
                       in_words(candidate->plan), 100 * (1 - base.metrics.samples_per_s / best),
                       100 * gained));
  }
  return found;
}

void check_cases(int plans, std::uint64_t seed, int least) {
  Found all;
  for (const PlannerCase& c : kPlannerCases) {
    const Found found = advise(c, plans, seed);
    all.scenarios += found.scenarios;
    all.much_faster += found.much_faster;
    all.with_advice += found.with_advice;
  }
  CHECK(all.scenarios >= least);
  CHECK(all.much_faster > 0);
  INFO(
      fmt::format("{} scenarios, {} of them much slower than the best plan", all.scenarios, all.much_faster));
  CHECK(all.with_advice == all.much_faster);
}

}  // namespace

TEST_CASE("advice makes no step longer, and finds a part of what the planner finds", "[planner][release]") {
  check_cases(1, 1, 12);
}

// ctest does not run this one; it takes some minutes.
TEST_CASE("advice for 200 random plans", "[.][advice]") {
  check_cases(13, 2, 200);
}
