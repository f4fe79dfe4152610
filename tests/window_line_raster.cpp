// Lines painted pixel by pixel: as dark as they are wide, where a painter would put them, and inside the
// clip.
#include "gui/views/line_raster.hpp"

#include <QPainter>
#include <cmath>

#include "tests/catch.hpp"

using namespace rehearse::gui;

namespace {

QImage ground(double ratio = 1) {
  QImage image(QSize(120, 100) * ratio, QImage::Format_RGB32);
  image.setDevicePixelRatio(ratio);
  image.fill(Qt::white);
  return image;
}

// How much of it is covered by black, in pixels.
double covered(const QImage& image) {
  double sum = 0;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) sum += 1 - qRed(image.pixel(x, y)) / 255.0;
  return sum;
}

std::vector<LineRaster::Line> one(QPointF a, QPointF b, double width) {
  return {{a, b, width, qRgb(0, 0, 0)}};
}

double greatest_difference(const QImage& a, const QImage& b) {
  int most = 0;
  for (int y = 0; y < a.height(); ++y)
    for (int x = 0; x < a.width(); ++x)
      most = std::max(most, std::abs(qRed(a.pixel(x, y)) - qRed(b.pixel(x, y))));
  return most;
}

}  // namespace

TEST_CASE("A line covers its width times its length, whatever its direction") {
  struct Case {
    QPointF a, b;
    double width;
  };
  const std::vector<Case> cases = {
      {{10, 10}, {10, 90}, 1},     {{10, 10}, {110, 10}, 1}, {{10.3, 10}, {10.3, 90}, 1},
      {{10, 20}, {100, 80}, 1.4},  {{20, 90}, {60, 10}, 2},  {{100, 80}, {10, 20}, 3.6},
      {{15, 85}, {105, 12}, 0.56}, {{20, 20}, {80, 80}, 1},
  };
  for (const double ratio : {1.0, 2.0})
    for (const Case& c : cases) {
      CAPTURE(c.a.x(), c.a.y(), c.b.x(), c.b.y(), c.width, ratio);
      QImage image = ground(ratio);
      LineRaster(image).paint(one(c.a, c.b, c.width));
      const double length = std::hypot(c.b.x() - c.a.x(), c.b.y() - c.a.y());
      CHECK(covered(image) == Approx(c.width * length * ratio * ratio).epsilon(0.03));
      QImage painted = ground(ratio);
      QPainter painter(&painted);
      painter.setRenderHint(QPainter::Antialiasing);
      painter.setPen(QPen(Qt::black, c.width, Qt::SolidLine, Qt::FlatCap));
      painter.drawLine(c.a, c.b);
      painter.end();
      // Ends apart, which are cut otherwise.
      const QRect inner(QPoint(25, 25) * ratio, QPoint(55, 75) * ratio);
      CHECK(greatest_difference(image.copy(inner), painted.copy(inner)) <= 70);
    }
}

TEST_CASE("Lines stay inside the image and the clip") {
  QImage image = ground();
  LineRaster raster(image);
  raster.paint(one({-500, -400}, {900, 700}, 3));
  raster.paint(one({-50, 40}, {-10, 90}, 3));
  CHECK(covered(image) > 100);
  image = ground();
  LineRaster clipped(image);
  clipped.set_clip({20, 30, 40, 20});
  clipped.paint(one({0, 40}, {120, 40}, 2));
  clipped.paint(one({40, 0}, {40, 100}, 2));
  CHECK(covered(image) == Approx(40 * 2 + 20 * 2 - 4));
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      if (!QRect(20, 30, 40, 20).contains(x, y)) REQUIRE(image.pixel(x, y) == qRgb(255, 255, 255));
}

TEST_CASE("Lines of a large image meet where its bands do, the later above the earlier") {
  QImage image(QSize(2000, 400), QImage::Format_RGB32);
  image.fill(Qt::white);
  LineRaster(image).paint(std::vector<LineRaster::Line>{{{1000.5, 20}, {1000.5, 380}, 3, qRgb(255, 0, 0)},
                                                        {{1000.5, 20}, {1000.5, 380}, 1, qRgb(0, 0, 0)}});
  for (int y = 20; y < 380; ++y) {
    REQUIRE(image.pixel(1000, y) == qRgb(0, 0, 0));
    REQUIRE(image.pixel(999, y) == qRgb(255, 0, 0));
    REQUIRE(image.pixel(1001, y) == qRgb(255, 0, 0));
  }
  CHECK(image.pixel(1000, 19) == qRgb(255, 255, 255));
  CHECK(image.pixel(1000, 380) == qRgb(255, 255, 255));
}
