// Checks that a click accepts what an error message suggests, including numbers and names that are nearly
// right.
#include <QtTest>

#include <QFile>
#include <QLabel>

#include "gui/views/scenario/scenario_view.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

QString shipped(const QString& name) {
  QFile file(REHEARSE_TESTS_DIR "/../simulator/scenarios/" + name + ".toml");
  REQUIRE(file.open(QIODevice::ReadOnly));
  return QString::fromUtf8(file.readAll());
}

struct Mending {
  Mending() { shown(window); }
  QLabel& told() const {
    for (QLabel* label : scenario.findChildren<QLabel*>())
      if (label->accessibleName() == "Whether the scenario can be run") return *label;
    FAIL("no label");
    return *scenario.findChildren<QLabel*>().front();
  }
  MainWindow window;
  ScenarioView& scenario = *static_cast<ScenarioView*>(window.view("scenario"));
};

}  // namespace

TEST_CASE("Numbers that an error names are taken over by a click, each of them") {
  const QString text = shipped("gpt3-175b");
  const QString key = "global_batch = 3072";
  REQUIRE(text.contains(key));
  for (const int choice : {0, 1}) {
    Mending m;
    m.scenario.set_text(QString(text).replace(key, "global_batch = 1500"), "gpt");
    REQUIRE(wait_for([&] { return m.told().text().contains("Change it to 1488"); }));
    CHECK(m.told().text().contains("or 1504"));
    emit m.told().linkActivated(QString("suggestion:%1").arg(choice));
    CHECK(m.scenario.draft().text() ==
          QString(text).replace(key, choice == 0 ? "global_batch = 1488" : "global_batch = 1504"));
    REQUIRE(wait_for([&] { return m.told().text().contains("768 devices"); }));
  }
}

TEST_CASE("A name that is nearly one of those allowed becomes it by a click") {
  Mending m;
  const QString text = shipped("megatron-7.5b-interleaved");
  REQUIRE(text.contains("\"interleaved\""));
  m.scenario.set_text(QString(text).replace("\"interleaved\"", "\"interleved\""), "megatron");
  REQUIRE(wait_for([&] { return m.told().text().contains("Change it to interleaved"); }));
  emit m.told().linkActivated("suggestion:0");
  CHECK(m.scenario.draft().text() == text);
  // If nothing is similar, there is nothing to accept.
  m.scenario.set_text(QString(text).replace("\"interleaved\"", "\"zigzag\""), "megatron");
  REQUIRE(wait_for([&] { return m.told().text().contains("zigzag"); }));
  CHECK_FALSE(m.told().text().contains("Change it to"));
}
