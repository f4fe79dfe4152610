// Tests which texts are numbers: the complete text, in range, in any locale.
#include "models/text/number_in.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "tests/catch.hpp"

using namespace rehearse;

TEST_CASE("a text is a number only as a whole and in range") {
  for (const auto& [text, number] : {std::pair<std::string_view, double>{"0", 0},
                                     {"-1.5", -1.5},
                                     {"2e3", 2000},
                                     {".5", 0.5},
                                     {"1e308", 1e308},
                                     {"inf", std::numeric_limits<double>::infinity()}}) {
    CAPTURE(text);
    CHECK(number_in<double>(text) == number);
  }
  CHECK(std::isnan(number_in<double>("nan").value()));
  for (const std::string_view text :
       {"", " ", " 1", "1 ", "+1", "1,5", "1.5x", "0x10", "1e999", "one", "-"}) {
    CAPTURE(text);
    CHECK_FALSE(number_in<double>(text));
    CHECK_FALSE(number_in<std::int64_t>(text));
  }
  CHECK(number_in<int>("2147483647") == 2147483647);
  CHECK_FALSE(number_in<int>("2147483648"));
  CHECK_FALSE(number_in<int>("1.0"));
  CHECK(number_in<std::int64_t>("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  CHECK(number_in<std::int64_t>("1234").value() == 1234);
  CHECK(finite_number_in("-2.5e3") == -2500);
  for (const std::string_view text : {"inf", "nan", "1e999", "1 ", ""}) {
    CAPTURE(text);
    CHECK_FALSE(finite_number_in(text));
  }
  // Parsing stops at the end of the view, even if digits follow.
  CHECK(number_in<int>(std::string_view("123456").substr(1, 2)) == 23);
}
