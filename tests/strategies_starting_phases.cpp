// Checks when asynchronous workers begin: at any time within a round, evenly spread over all simulations.
#include "simulator/strategies/gradients/starting_phases.hpp"

#include <algorithm>

#include "tests/catch.hpp"

using namespace rehearse;

TEST_CASE("each worker begins once in each part of a round") {
  for (const int simulations : {2, 3, 8}) {
    const auto starts_s = starting_phases(simulations, 5, 0.030, 1);
    CAPTURE(simulations);
    REQUIRE(starts_s.size() == static_cast<std::size_t>(simulations));
    for (std::size_t worker = 0; worker < 5; ++worker) {
      std::vector<int> parts;
      for (const std::vector<double>& start_s : starts_s) {
        REQUIRE(start_s.size() == 5);
        REQUIRE(start_s[worker] >= 0);
        parts.push_back(static_cast<int>(start_s[worker] / 0.030 * simulations));
      }
      std::sort(parts.begin(), parts.end());
      for (int part = 0; part < simulations; ++part) CHECK(parts[static_cast<std::size_t>(part)] == part);
    }
    // Workers begin at different times.
    CHECK(starts_s[0][0] != starts_s[0][1]);
  }
}

TEST_CASE("the seed alone decides where workers begin") {
  CHECK(starting_phases(8, 4, 1, 1) == starting_phases(8, 4, 1, 1));
  CHECK(starting_phases(8, 4, 1, 1) != starting_phases(8, 4, 1, 2));
  // std::mt19937_64 gives the same numbers on all platforms; the phases derived from them must be the same,
  // too.
  const auto halved = starting_phases(8, 4, 0.5, 7), whole = starting_phases(8, 4, 1, 7);
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t w = 0; w < 4; ++w) CHECK(halved[i][w] * 2 == Approx(whole[i][w]).epsilon(1e-15));
}
