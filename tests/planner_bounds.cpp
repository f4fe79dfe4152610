// Bounds of plans against their simulation.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "tests/catch.hpp"
#include "tests/planner_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

TEST_CASE("no plan is faster or smaller than its bounds", "[planner][release]") {
  constexpr int kPlans = 24;
  for (const PlannerCase& c : kPlannerCases) {
    INFO(c.name);
    const PlanQuestion question = question_of(c);
    const SpaceLimits limits;
    PlanSearch search = search_of(question, limits);
    REQUIRE(search.space().bounded > 50);
    std::mt19937_64 random(7);
    for (int i = 0; i < kPlans; ++i) {
      const std::size_t number =
          random() % static_cast<std::uint64_t>(std::min<std::int64_t>(search.space().bounded, 4000));
      const Candidate candidate = *search.candidate(number);
      INFO(fmt::format("plan {}: {}", number, in_words(candidate.plan)));
      const PlanFigures figures = simulate_plan(question, candidate.plan, {}, {}, Where::child);
      INFO(figures.error);
      CHECK(figures.status == PlanFigures::Status::ok);
      CHECK(candidate.bound_s <= figures.step_time_s * (1 + 1e-9));
      CHECK(candidate.bound_bytes <= (figures.memory_bytes + figures.reserved_bytes) * (1 + 1e-9));
      CHECK(figures.without_gradients_s <= figures.step_time_s);
    }
  }
}
