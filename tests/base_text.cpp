// Tests how numbers are formatted for people: rounding, units, and independence of the locale.
#include "models/text/text.hpp"

#include <clocale>
#include <cmath>
#include <limits>
#include <locale>

#include "tests/catch.hpp"

using namespace rehearse;

TEST_CASE("bytes in SI units with three digits") {
  const std::pair<double, std::string> cases[] = {
      {0, "0 B"},          {1, "1 B"},        {999, "999 B"},     {1000, "1 kB"},      {1536, "1.54 kB"},
      {999.4e6, "999 MB"}, {999.6e6, "1 GB"}, {1.5e9, "1.5 GB"},  {80e9, "80 GB"},     {12.34e12, "12.3 TB"},
      {7e15, "7 PB"},      {3e18, "3 EB"},    {5e21, "5,000 EB"}, {-2.5e6, "-2.5 MB"}, {0.5, "0.5 B"},
  };
  for (const auto& [value, text] : cases) {
    CAPTURE(value);
    CHECK(human_bytes(value) == text);
  }
}

TEST_CASE("times from nanoseconds to seconds") {
  const std::pair<double, std::string> cases[] = {
      {0, "0 s"},         {24.6, "24.6 s"},   {24.649, "24.6 s"},     {3.21e-3, "3.21 ms"},
      {4.5e-6, "4.5 us"}, {1e-9, "1 ns"},     {0.25e-9, "0.25 ns"},   {0.9994, "999 ms"},
      {0.9996, "1 s"},    {999.6, "1,000 s"}, {86400, "86,400 s"},    {1.0, "1 s"},
      {10e-6, "10 us"},   {123.4, "123 s"},   {2.5e-12, "0.0025 ns"},
  };
  for (const auto& [value, text] : cases) {
    CAPTURE(value);
    CHECK(human_time_s(value) == text);
  }
}

TEST_CASE("counts with k, M, B and T") {
  const std::pair<double, std::string> cases[] = {
      {0, "0"},
      {62, "62"},
      {62.34, "62.3"},
      {999.5, "1 k"},
      {128000, "128 k"},
      {25.557032e6, "25.6 M"},
      {174.6e9, "175 B"},
      {175.2e9, "175 B"},
      {1.008e12, "1.01 T"},
      {2.5e16, "25,000 T"},
  };
  for (const auto& [value, text] : cases) {
    CAPTURE(value);
    CHECK(human_count(value) == text);
  }
  CHECK(human_count(std::nan("")) == "NaN");
  CHECK(human_count(std::numeric_limits<double>::infinity()) == "infinity");
  CHECK(human_time_s(-std::numeric_limits<double>::infinity()) == "-infinity");
}

TEST_CASE("thousands are set apart") {
  const std::pair<long, std::string> cases[] = {
      {0, "0"},          {12, "12"},      {999, "999"},
      {1000, "1,000"},   {1024, "1,024"}, {1234567, "1,234,567"},
      {-1000, "-1,000"}, {-999, "-999"},  {std::numeric_limits<long>::min(), "-9,223,372,036,854,775,808"},
  };
  for (const auto& [value, text] : cases) CHECK(with_thousands(value) == text);
}

TEST_CASE("no locale changes a number") {
  // A locale with a decimal comma that exists on every machine, because it is defined here.
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale before = std::locale::global(std::locale(std::locale::classic(), new Comma));
  CHECK(human_bytes(1.5e9) == "1.5 GB");
  CHECK(human_time_s(3.21e-3) == "3.21 ms");
  CHECK(with_thousands(1024) == "1,024");
  std::locale::global(before);
}
