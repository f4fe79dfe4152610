// Compares steps of many micro-batches, predicted from a few, with the simulation of all.
#include <cmath>

#include "simulator/commands/predicting/repeated_rounds.hpp"
#include "tests/catch.hpp"
#include "tests/planner_optimal_cases.hpp"
#include "tests/planner_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

TEST_CASE("a step extended from few micro-batches is that of all", "[planner][release]") {
  constexpr double kAnyOps = 1;  // predicts every plan of many micro-batches from a few
  constexpr double kRounding = 1e-9;
  constexpr std::size_t kPlans = 8;
  const OptimalCase cases[] = {
      {kGpt, "global_batch = 512\n", kEthernet, "", kOrders},
      {kDeepGpt, "global_batch = 768\n", kOneNode, "", kMemory},
      {kLlama, "global_batch = 256\n", kOneNode, "", kDegrees},
      {kMixture, "global_batch = 384\n", kSlowDevice, "", kExperts},
      {kProfiled, "global_batch = 640\n", kSingles, "", kProfiledSpace},
  };
  for (const OptimalCase& c : cases) {
    INFO(c.text());
    const PlanQuestion question = plan_question(c.text(), "case.toml", {});
    PlanSearch search = search_of(question, c.limits);
    const auto all = static_cast<std::size_t>(search.space().bounded);
    std::size_t extended = 0;
    for (std::size_t i = 0; i < kPlans; ++i) {
      const PlanChoice plan = search.candidate(i * (all - 1) / (kPlans - 1))->plan;
      INFO(in_words(plan));
      const PlanFigures quick = simulate_plan(question, plan, {}, {kAnyOps, 0}, Where::child),
                        exact = simulate_plan(question, plan, {}, {}, Where::child);
      REQUIRE(quick.error == "");
      REQUIRE(exact.error == "");
      const bool extrapolated = quick.simulated_microbatches > 0;
      extended += extrapolated || quick.result.find("simulated_microbatches") != std::string::npos ? 1 : 0;
      const double most_error = extrapolated ? kMostUneven : kRounding;
      CHECK(std::abs(quick.step_time_s / exact.step_time_s - 1) <= most_error);
      CHECK(std::abs(quick.memory_bytes / exact.memory_bytes - 1) <= most_error);
      CHECK(quick.without_gradients_s <= exact.step_time_s * (1 + most_error));
    }
    CHECK(extended >= kPlans / 2);
  }
}
