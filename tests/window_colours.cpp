// Checks that neighbouring colours can be told apart with usual and deficient colour vision, on light and
// dark backgrounds.
#include <array>
#include <cmath>

#include "gui/models/tracks/area_totals.hpp"
#include "gui/views/comparison/stacked_bars.hpp"
#include "gui/views/parts/appearance.hpp"
#include "tests/catch.hpp"

using namespace rehearse::gui;

namespace {

using Vector = std::array<double, 3>;

Vector linear(const QColor& colour) {
  const auto one = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
  return {one(colour.redF()), one(colour.greenF()), one(colour.blueF())};
}

// Colour vision as modelled by Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation
// of Color Vision Deficiency" (2009), severity 1.
enum class Eyes { usual, protan, deutan };
Vector seen(const Vector& c, Eyes eyes) {
  static constexpr std::array<std::array<double, 9>, 3> kMatrices = {
      {{1, 0, 0, 0, 1, 0, 0, 0, 1},
       {0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998},
       {0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881}}};
  const auto& m = kMatrices[static_cast<std::size_t>(eyes)];
  Vector result{};
  for (std::size_t i = 0; i < 3; ++i)
    result[i] = std::clamp(m[3 * i] * c[0] + m[3 * i + 1] * c[1] + m[3 * i + 2] * c[2], 0.0, 1.0);
  return result;
}

Vector lab(const Vector& c) {
  const auto f = [](double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; };
  const double x = f((0.4124564 * c[0] + 0.3575761 * c[1] + 0.1804375 * c[2]) / 0.95047);
  const double y = f(0.2126729 * c[0] + 0.7151522 * c[1] + 0.0721750 * c[2]);
  const double z = f((0.0193339 * c[0] + 0.1191920 * c[1] + 0.9503041 * c[2]) / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

// Returns the CIEDE2000 difference (Sharma, Wu and Dalal, 2005).
double difference(const Vector& first, const Vector& second) {
  constexpr double kPi = 3.14159265358979323846;
  const auto radians = [](double degrees) { return degrees * kPi / 180; };
  const double mean = (std::hypot(first[1], first[2]) + std::hypot(second[1], second[2])) / 2;
  const auto seventh = [](double c) {
    return std::sqrt(std::pow(c, 7) / (std::pow(c, 7) + std::pow(25.0, 7)));
  };
  const double g = 0.5 * (1 - seventh(mean));
  const double a1 = first[1] * (1 + g), a2 = second[1] * (1 + g);
  const double c1 = std::hypot(a1, first[2]), c2 = std::hypot(a2, second[2]);
  const auto hue = [&](double a, double b) {
    const double h = std::atan2(b, a) * 180 / kPi;
    return h < 0 ? h + 360 : h;
  };
  const double h1 = hue(a1, first[2]), h2 = hue(a2, second[2]);
  double dh = c1 * c2 == 0 ? 0 : h2 - h1;
  if (dh > 180) dh -= 360;
  if (dh < -180) dh += 360;
  const double dl = second[0] - first[0], dc = c2 - c1,
               dhue = 2 * std::sqrt(c1 * c2) * std::sin(radians(dh / 2));
  const double l = (first[0] + second[0]) / 2, c = (c1 + c2) / 2;
  double h = h1 + h2;
  if (c1 * c2 != 0) h = std::abs(h1 - h2) <= 180 ? h / 2 : h < 360 ? (h + 360) / 2 : (h - 360) / 2;
  const double t = 1 - 0.17 * std::cos(radians(h - 30)) + 0.24 * std::cos(radians(2 * h)) +
                   0.32 * std::cos(radians(3 * h + 6)) - 0.2 * std::cos(radians(4 * h - 63));
  const double sl = 1 + 0.015 * (l - 50) * (l - 50) / std::sqrt(20 + (l - 50) * (l - 50));
  const double sc = 1 + 0.045 * c, sh = 1 + 0.015 * c * t;
  const double turn = 30 * std::exp(-std::pow((h - 275) / 25, 2));
  const double rt = -std::sin(radians(2 * turn)) * 2 * seventh(c);
  return std::sqrt(std::pow(dl / sl, 2) + std::pow(dc / sc, 2) + std::pow(dhue / sh, 2) +
                   rt * (dc / sc) * (dhue / sh));
}

}  // namespace

TEST_CASE("The difference of colours is that of CIEDE2000") {
  // Pairs 1, 7 and 17 of the published test data.
  CHECK(difference({50, 2.6772, -79.7751}, {50, 0, -82.7485}) == Approx(2.0425).margin(1e-4));
  CHECK(difference({50, 0, 0}, {50, -1, 2}) == Approx(2.3669).margin(1e-4));
  CHECK(difference({50, 2.5, 0}, {73, 25, -18}) == Approx(27.1492).margin(1e-4));
}

TEST_CASE("Passes, and what stands beside them, are told apart by all eyes, on light and dark ground") {
  constexpr double kLeast = 13, kLeastColourBlind = 9;  // 2 is barely visible, side by side
  const std::vector<Style> passes = {0, 1, 2, 3, 4, 5};
  std::vector<Style> beside;
  for (const Kind kind : {Kind::communication, Kind::waiting, Kind::bubble, Kind::data, Kind::checkpoint})
    beside.push_back(style_of(kind, Pass::none));
  for (const bool dark : {false, true})
    for (const Eyes eyes : {Eyes::usual, Eyes::protan, Eyes::deutan}) {
      const auto colour = [&](const QColor& of) { return lab(seen(linear(of), eyes)); };
      const auto of_style = [&](Style s) { return colour(colour_of(kind_of(s), pass_of(s), dark)); };
      const double least = eyes == Eyes::usual ? kLeast : kLeastColourBlind;
      const Vector ground = colour(palette_of(dark ? Theme::dark : Theme::light).color(QPalette::Base));
      for (const Style pass : passes) {
        CAPTURE(dark, static_cast<int>(eyes), style_name(pass));
        CHECK(difference(of_style(pass), ground) >= least);
        for (const Style other : passes) {
          CAPTURE(style_name(other));
          if (other < pass) CHECK(difference(of_style(pass), of_style(other)) >= least);
        }
        for (const Style other : beside) {
          CAPTURE(style_name(other));
          CHECK(difference(of_style(pass), of_style(other)) >= least);
        }
      }
    }
}

TEST_CASE("What is computed again has one colour in every view") {
  RunFigures figures;
  figures.path_by_kind = {{"forward", 1}, {"recompute", 1}, {"backward weight", 1}};
  const Bar bar = path_bar(figures);
  REQUIRE(bar.parts.size() == 3);
  CHECK(bar.parts[1].kind == Kind::compute);
  CHECK(bar.parts[1].pass == Pass::recompute);
  CHECK(bar.parts[1].shade == 0);
  CHECK(bar.parts[2].pass == Pass::weights);
  CHECK(style_name(style_of(Kind::compute, Pass::recompute)) == "recompute");
}
