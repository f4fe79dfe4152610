// Tests the statistics below a table of measurements against figures computed by hand.
#include "simulator/commands/validate/statistics.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

Observation row(const char* scaling, const char* comparison, int devices, double measured, double predicted,
                double efficiency = 0) {
  return {"", scaling, comparison, devices, measured, predicted, efficiency};
}

}  // namespace

TEST_CASE("errors: mean, mean and median of absolute ones, worst") {
  const ErrorSummary s = summarize({0.1, -0.3, 0.05, 0.0});
  CHECK(s.rows == 4);
  CHECK(s.mean == Approx(-0.0375));
  CHECK(s.mean_absolute == Approx(0.1125));
  CHECK(s.median_absolute == Approx(0.075));  // between 0.05 and 0.1
  CHECK(s.worst == -0.3);
  CHECK(summarize({-0.2, 0.1, 0.4}).median_absolute == Approx(0.2));
  CHECK(summarize({}).rows == 0);
  CHECK(summarize({}).mean_absolute == 0);
}

TEST_CASE("scaling efficiency is throughput a device over that of the smallest row") {
  const std::vector<Observation> rows = {
      row("a", "", 4, 360, 400),       // measured 360 / 4 / 100 = 0.9; predicted 400 / 4 / 110
      row("a", "", 1, 100, 110),       // the base, at any position
      row("a", "", 8, 0, 800),         // not measured: no efficiency
      row("b", "", 2, 50, 60),         // no row with one device: the base is 25 per device
      row("b", "", 4, 80, 108),        // 20 / 25 = 0.8; 27 / 30 = 0.9
      row("c", "", 1, 0, 10),          // only a base for scaling
      row("c", "", 16, 0, 120, 0.68),  // 0.68 as printed; 7.5 / 10
      row("", "", 8, 5, 5),           row("d", "", 2, 7, 7),
      row("d", "", 2, 9, 7),  // no more devices than the base
  };
  const std::vector<Efficiency> e = scaling_efficiencies(rows);
  REQUIRE(e.size() == 3);
  CHECK(e[0].row == 0);
  CHECK(e[0].base == 1);
  CHECK(e[0].measured == Approx(0.9));
  CHECK(e[0].predicted == Approx(100.0 / 110));
  CHECK(e[1].row == 4);
  CHECK(e[1].measured == Approx(0.8));
  CHECK(e[1].predicted == Approx(0.9));
  CHECK(e[2].row == 6);
  CHECK(e[2].measured == 0.68);
  CHECK(e[2].predicted == Approx(0.75));
  CHECK(mean_difference(e) == Approx((100.0 / 110 - 0.9 + 0.1 + 0.07) / 3));
  CHECK(mean_difference({}) == 0);
}

TEST_CASE("alternatives are compared if they were measured more than the threshold apart") {
  const std::vector<Observation> rows = {
      row("", "x", 8, 100, 90),
      row("", "x", 8, 105, 80),  // no more than 5 % above the first: not compared with it
      row("", "x", 8, 120, 85),  // faster than both; predicted slower than the first, faster than the second
      row("", "x", 8, 0, 1000),  // not measured
      row("", "y", 8, 10, 5),
      row("", "y", 8, 20, 5),  // equal predictions do not count as right
      row("", "", 8, 1, 2),
      row("", "", 8, 2, 1),
  };
  const std::vector<Comparison> found = compared_orders(rows);
  REQUIRE(found.size() == 3);
  CHECK((found[0].faster == 2 && found[0].slower == 0 && !found[0].right));
  CHECK((found[1].faster == 2 && found[1].slower == 1 && found[1].right));
  CHECK((found[2].faster == 5 && found[2].slower == 4 && !found[2].right));
  CHECK(compared_orders(rows, 0.04).size() == 4);
}
