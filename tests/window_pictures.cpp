// Compares pictures of six views with approved ones in tests/pictures/. Other versions of Qt and FreeType
// draw letters slightly differently, so the pictures are small and compared with a tolerance.
// REHEARSE_UPDATE_GOLDEN=1 rewrites them; inspect them afterwards.
#include <QtTest>

#include <QDir>
#include <QImage>
#include <cstdlib>

#include "gui/views/parts/export.hpp"
#include "gui/views/window/main_window.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

const QSize kView(1280, 800), kPicture(320, 200);
constexpr double kMeanDifference = 3;  // of 255, over all pixels and colours
constexpr int kFar = 48;               // of 255: a different colour, not just another edge of a letter
constexpr double kFarPixels = 0.01;

struct Difference {
  double mean = 0, far_share = 0;
};

Difference difference(const QImage& a, const QImage& b) {
  Difference result;
  for (int y = 0; y < a.height(); ++y)
    for (int x = 0; x < a.width(); ++x) {
      const QRgb p = a.pixel(x, y), q = b.pixel(x, y);
      const int red = std::abs(qRed(p) - qRed(q)), green = std::abs(qGreen(p) - qGreen(q)),
                blue = std::abs(qBlue(p) - qBlue(q));
      result.mean += red + green + blue;
      result.far_share += std::max({red, green, blue}) > kFar ? 1 : 0;
    }
  const double pixels = static_cast<double>(a.width()) * a.height();
  return {result.mean / pixels / 3, result.far_share / pixels};
}

}  // namespace

TEST_CASE("Views look as they did") {
  struct Case {
    const char* name;
    const char* view;
    Theme theme;
    QStringList files;
  };
  const QString measured =
      REHEARSE_TESTS_DIR "/../benchmarks/recorded/emulated/tree-2to1-8-16mb-ring.json.gz";
  const std::vector<Case> cases = {
      {"pipeline-timeline", "timeline", Theme::light, {pipeline_trace()}},
      {"pipeline-why", "why", Theme::light, {pipeline_trace()}},
      {"ring-and-servers-compare", "compare", Theme::dark, {ring_trace(), servers_trace()}},
      {"tree-topology", "topology", Theme::light, {measured}},
      {"pipeline-memory", "memory", Theme::dark, {pipeline_trace()}},
      {"gpt3-plan", "plan", Theme::light, {REHEARSE_TESTS_DIR "/plans/gpt3-175b.json"}},
  };
  const bool update = std::getenv("REHEARSE_UPDATE_GOLDEN") != nullptr;
  const QDir folder(REHEARSE_TESTS_DIR "/pictures");
  for (const Case& c : cases) {
    CAPTURE(c.name);
    MainWindow window;
    shown(window);
    window.set_theme(c.theme);
    window.open_files(c.files);
    settle(window);
    window.show_view(c.view);
    QWidget* view = window.view(c.view);
    view->setParent(nullptr);
    view->resize(kView);
    view->show();
    const auto picture = [&] {
      return picture_of(*view, 1)
          .convertToFormat(QImage::Format_RGB32)
          .scaled(kPicture, Qt::IgnoreAspectRatio, Qt::SmoothTransformation);
    };
    const QString path = folder.filePath(QString(c.name) + ".png");
    if (update) {
      QTest::qWait(2000);  // waits for work on other threads
      REQUIRE(picture().save(path));
      delete view;
      continue;
    }
    const QImage expected = QImage(path).convertToFormat(QImage::Format_RGB32);
    REQUIRE(expected.size() == kPicture);
    QImage last;
    Difference found;
    const bool as_expected = wait_for([&] {
      last = picture();
      found = difference(last, expected);
      return found.mean <= kMeanDifference && found.far_share <= kFarPixels;
    });
    delete view;
    if (!as_expected) last.save(QDir::temp().filePath(QString("rehearse-") + c.name + ".png"));
    CHECK(found.mean <= kMeanDifference);
    CHECK(found.far_share <= kFarPixels);
    // The comparison is sensitive enough: a picture moved by a row of text differs.
    CHECK(difference(expected, expected.copy(0, 5, kPicture.width(), kPicture.height())).far_share >
          kFarPixels);
  }
}
