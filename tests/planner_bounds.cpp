// Compares the bounds of plans with the plans' simulation.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "tests/catch.hpp"
#include "tests/planner_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

// Simulates the plan and checks that its figures are not below its bounds.
void check_bounds(const PlanQuestion& question, const Candidate& candidate) {
  const PlanFigures figures = simulate_plan(question, candidate.plan, {}, {}, Where::child);
  INFO(figures.error);
  CHECK(figures.status == PlanFigures::Status::ok);
  CHECK(candidate.bound_s <= figures.step_time_s * (1 + 1e-9));
  CHECK(candidate.bound_bytes <= (figures.memory_bytes + figures.reserved_bytes) * (1 + 1e-9));
  CHECK(figures.without_gradients_s <= figures.step_time_s);
}

void check_random_plans(int plans) {
  for (const PlannerCase& c : kPlannerCases) {
    INFO(c.name);
    const PlanQuestion question = question_of(c);
    const SpaceLimits limits;
    PlanSearch search = search_of(question, limits);
    REQUIRE(search.space().bounded > 50);
    std::mt19937_64 random(7);
    for (int i = 0; i < plans; ++i) {
      const std::size_t number =
          random() % static_cast<std::uint64_t>(std::min<std::int64_t>(search.space().bounded, 4000));
      const Candidate candidate = *search.candidate(number);
      INFO(fmt::format("plan {}: {}", number, in_words(candidate.plan)));
      check_bounds(question, candidate);
    }
  }
}

}  // namespace

TEST_CASE("no plan is faster or smaller than its bounds", "[planner][release]") {
  check_random_plans(10);
}

// ctest does not run this one.
TEST_CASE("no plan of many is faster or smaller than its bounds", "[.][exhaustive]") {
  check_random_plans(100);
}

// The last stage holds a copy of the embedding's table beside a norm; the table is far larger than the
// stage's own largest layer.
TEST_CASE("a stage gathers its copy of a tied table at once", "[planner]") {
  const PlanQuestion question = plan_question(
      "[model.transformer]\nlayers = 7\nhidden = 256\nheads = 4\nvocabulary = 32000\nsequence_length = 256\n"
      "[training]\nglobal_batch = 24\n[cluster]\npreset = \"workstation-10gbe\"\nnodes = 3\n",
      "case.toml", {});
  const SpaceLimits limits = {{"strategy.tensor", {"1", "2"}},     {"strategy.pipeline", {"2"}},
                              {"strategy.schedule", {"1f1b"}},     {"training.micro_batch", {"2"}},
                              {"strategy.zero_stage", {"2", "3"}}, {"training.recompute", {"none"}}};
  PlanSearch search = search_of(question, limits);
  REQUIRE(search.candidate(7) != nullptr);
  for (std::size_t number = 0; const Candidate* candidate = search.candidate(number); ++number) {
    INFO(in_words(candidate->plan));
    check_bounds(question, *candidate);
  }
}
