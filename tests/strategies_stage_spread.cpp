// Checks the assumed differences between the stages of a profiled pipeline.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "simulator/strategies/layout/stage_spread.hpp"
#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/model_cut.hpp"
#include "tests/catch.hpp"
#include "tests/strategies_scenarios.hpp"

using namespace rehearse;
using namespace rehearse::test;

TEST_CASE("expected values of sorted draws from the normal distribution") {
  const double pi = 3.14159265358979323846;
  // Closed forms for 2 and 3 draws; for others table 1 of Teichroew, "Tables of Expected Values of Order
  // Statistics" (Annals of Mathematical Statistics 27, 1956), and for 100 table 2 of Harter, "Expected Values
  // of Normal Order Statistics" (Biometrika 48, 1961).
  const struct {
    int count;
    std::vector<double> largest;
    double within;
  } cases[] = {{1, {0}, 1e-12},
               {2, {1 / std::sqrt(pi)}, 1e-12},
               {3, {1.5 / std::sqrt(pi), 0}, 1e-12},
               {4, {1.0293753730, 0.2970113823}, 1e-9},
               {8, {1.4236003060, 0.8522248625, 0.4728224949, 0.1525143995}, 1e-9},
               {100, {2.50759}, 1e-5}};
  for (const auto& c : cases) {
    CAPTURE(c.count);
    const std::vector<double> found = normal_order_statistics(c.count);
    REQUIRE(found.size() == static_cast<std::size_t>(c.count));
    CHECK(std::is_sorted(found.begin(), found.end()));
    for (std::size_t i = 0; i < c.largest.size(); ++i)
      CHECK(found[found.size() - 1 - i] == Approx(c.largest[i]).margin(c.within));
  }
}

TEST_CASE("stages differ about their mean, fast and slow ones in turns") {
  for (const int stages : {1, 2, 3, 8, 32, 10'000}) {
    CAPTURE(stages);
    for (const double factor : stage_factors(stages, 0)) CHECK(factor == 1);
    const double deviation = 0.25;
    const std::vector<double> factors = stage_factors(stages, deviation),
                              sorted = normal_order_statistics(stages);
    CHECK(std::accumulate(factors.begin(), factors.end(), 0.0) == Approx(stages).epsilon(1e-12));
    CHECK(*std::min_element(factors.begin(), factors.end()) > 0);
    CHECK(factors.front() == Approx(1 + deviation * sorted.front()));
    if (stages > 1) CHECK(factors[1] == Approx(1 + deviation * sorted.back()));
    for (std::size_t stage = 0; stage + 1 < factors.size(); stage += 2)
      CHECK(factors[stage] + factors[stage + 1] == Approx(2));
  }
}

TEST_CASE("all parts of the model that a stage holds are as slow as the stage") {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved, PipelineSchedule::zb_v}) {
    CAPTURE(static_cast<int>(schedule));
    const int stages = 4, chunks = order_of(schedule).fewest_chunks;
    Model model = profile(stages * chunks);
    Scenario s = scenario(model, 1, stages, 8);
    s.strategy.schedule = schedule;
    s.strategy.virtual_stages = chunks;
    const ModelCut equal = cut_model(s);
    std::get<ProfiledModel>(s.model.shape).stage_deviation = 0.05;
    const ModelCut spread = cut_model(s);
    CHECK(spread.stage_layers == equal.stage_layers);
    const std::vector<double> factors = stage_factors(stages, 0.05);
    for (int part = 0; part < stages * chunks; ++part) {
      const auto number = static_cast<std::size_t>(part);
      const LayerCost &was = equal.layers[number].segments[0].cost,
                      &is = spread.layers[number].segments[0].cost;
      const double factor =
          factors[static_cast<std::size_t>(stage_of_part(order_of(schedule).placement, stages, part))];
      CHECK(is.forward[0].seconds == Approx(factor * was.forward[0].seconds));
      CHECK(is.backward_input[0].seconds == Approx(factor * was.backward_input[0].seconds));
      CHECK(is.backward_weight[0].seconds == Approx(factor * was.backward_weight[0].seconds));
    }
  }
}
