// Checks the command line of `rehearse-gui`: pictures without a display, and errors by message and status.
#include <QImage>
#include <QProcess>
#include <QTemporaryDir>
#include <fstream>

#include "gui/views/window/main_window.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;
using rehearse::test::kPatienceMs;

namespace {

struct Outcome {
  int status = -1;
  QString out, err;
};

Outcome rehearse_gui(const QStringList& arguments) {
  QProcess process;
  process.start(REHEARSE_BIN_DIR "/rehearse-gui", arguments);
  REQUIRE(process.waitForFinished(kPatienceMs));
  REQUIRE(process.exitStatus() == QProcess::NormalExit);
  return {process.exitCode(), process.readAllStandardOutput(), process.readAllStandardError()};
}

}  // namespace

TEST_CASE("Pictures are made without a display", "[release]") {
  const QTemporaryDir folder;
  struct Case {
    QStringList files;
    const char* view;
  };
  const QString scenario = REHEARSE_TESTS_DIR "/../simulator/scenarios/resnet50-ring.toml";
  const std::vector<Case> cases = {{{pipeline_trace()}, "timeline"},
                                   {{scenario}, "why"},
                                   {{ring_trace(), servers_trace()}, "compare"},
                                   {{REHEARSE_TESTS_DIR "/traces/gpu-kernels.json"}, "window"}};
  for (const Case& c : cases) {
    CAPTURE(c.view);
    const QString path = folder.filePath(QString(c.view) + ".png");
    const Outcome outcome = rehearse_gui(
        c.files + QStringList{"--screenshot", path, "--view", c.view, "--size", "900x500", "--scale", "1"});
    CAPTURE(outcome.err.toStdString());
    CHECK(outcome.status == 0);
    const QImage image(path);
    CHECK(image.size() == QSize(900, 500));
    // The picture has content, not just a background of one colour.
    std::set<QRgb> colours;
    for (int y = 0; y < image.height(); y += 3)
      for (int x = 0; x < image.width(); x += 3) colours.insert(image.pixel(x, y));
    CHECK(colours.size() > 20);
  }
}

TEST_CASE("What is wrong with the command line or a file is told", "[release]") {
  const QTemporaryDir folder;
  const QString broken = folder.filePath("broken.toml"), picture = folder.filePath("a.png");
  std::ofstream(broken.toStdString()) << "[model]\npreset = \"resnet51\"\n";
  struct Case {
    QStringList arguments;
    int status;
    const char* told;
  };
  const std::vector<Case> cases = {
      {{"--screenshot", "a.gif"}, 2, "\"a.gif\" has another ending; allowed: .png, .svg"},
      {{"--screenshot", "a.png", "--size", "12"}, 2, "\"12\" is not a size"},
      {{"--screenshot", "a.png", "--size", "1280x99999"}, 2, "allowed: WIDTHxHEIGHT of 200 to 10000 pixels"},
      {{"--screenshot", "a.png", "--scale", "9"}, 2, "9 is not a scale; allowed: 1 to 4"},
      {{"--screenshot", "a.png", "--view", "walls"}, 2, "--view"},
      {{"--theme", "pink"}, 2, "--theme"},
      {{"--colour"}, 2, "--colour"},
      {{folder.filePath("none.json"), "--screenshot", picture}, 2, "none.json"},
      {{broken, "--screenshot", picture}, 2, "resnet51"},
      {{pipeline_trace(), "--screenshot", folder.filePath("no/such.png")}, 1, "cannot be written"},
  };
  for (const Case& c : cases) {
    const Outcome outcome = rehearse_gui(c.arguments);
    CAPTURE(c.arguments.join(" ").toStdString(), outcome.err.toStdString());
    CHECK(outcome.status == c.status);
    CHECK(outcome.err.contains(c.told));
  }
  QProcess process;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) environment.remove(name);
  process.setProcessEnvironment(environment);
  process.start(REHEARSE_BIN_DIR "/rehearse-gui", QStringList());
  REQUIRE(process.waitForFinished(kPatienceMs));
  CHECK(process.exitStatus() == QProcess::NormalExit);
  CHECK(process.exitCode() == 1);
  CHECK(process.readAllStandardError().contains("there is no display"));

  CHECK(rehearse_gui({"--version"}).out.startsWith("rehearse-gui "));
  CHECK(rehearse_gui({"--help"}).out.contains("--screenshot"));
}
