// Checks that a long prediction shows its progress above all views and can be cancelled there.
#include <QtTest>

#include <fstream>

#include "gui/views/scenario/run_progress.hpp"
#include "gui/views/scenario/scenario_view.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

// Writes a script that replaces the program: it prints its progress and then only waits.
QString slow_program(const QTemporaryDir& folder, const char* tells) {
  const QString path = folder.filePath("slow");
  std::ofstream(path.toStdString()) << "#!/bin/sh\ncat > /dev/null\necho '" << tells
                                    << "' >&2\nexec sleep 600\n";
  QFile::setPermissions(path, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
  return path;
}

const char* const kText =
    "[model]\npreset = \"mlp\"\n[training]\nglobal_batch = 64\n[cluster]\npreset = \"cpu-cluster\"\n"
    "nodes = 4\n";

}  // namespace

TEST_CASE("A long prediction is told with its progress, and cancelled") {
  const QTemporaryDir folder;
  MainWindow window;
  shown(window);
  auto& scenarios = *static_cast<ScenarioView*>(window.view("scenario"));
  auto& progress = *window.findChild<RunProgress*>();
  CHECK_FALSE(progress.isVisible());
  scenarios.runner().set_program(slow_program(folder, "simulating: 42 %"));
  scenarios.set_text(kText, "mine");
  scenarios.run();
  scenarios.run_text(kText, "next", {});
  REQUIRE(wait_for([&] { return progress.isVisible() && progress.bar().value() == 420; }));
  CHECK(progress.told().text().startsWith("Predicting mine, "));
  CHECK(progress.told().text().endsWith(" s, 1 queued"));
  CHECK(progress.bar().maximum() == 1000);
  QStringList said;
  for (const QLabel* label : progress.findChildren<QLabel*>()) said << label->text();
  CHECK(said.contains("simulating: 42 %"));
  progress.cancel().setFocus();
  QTest::keyClick(&progress.cancel(), Qt::Key_Space);
  REQUIRE(wait_for([&] { return scenarios.runner().running_name() == "next"; }));
  CHECK(progress.isVisible());  // the next one is still running
  QTest::mouseClick(&progress.cancel(), Qt::LeftButton);
  CHECK(wait_for([&] { return !progress.isVisible() && window.settled(); }));
  CHECK(window.notices().last().startsWith("next: cancelled after "));
}

TEST_CASE("A program that tells no share is busy, and one that is quick is not told") {
  const QTemporaryDir folder;
  MainWindow window;
  shown(window);
  auto& scenarios = *static_cast<ScenarioView*>(window.view("scenario"));
  auto& progress = *window.findChild<RunProgress*>();
  scenarios.runner().set_program(slow_program(folder, "building the network ..."));
  scenarios.set_text(kText, "mine");
  scenarios.run();
  CHECK_FALSE(progress.isVisible());  // not immediately
  REQUIRE(wait_for([&] { return progress.isVisible(); }));
  CHECK(progress.bar().maximum() == 0);
  scenarios.cancel();
  CHECK(wait_for([&] { return !progress.isVisible(); }));
}
