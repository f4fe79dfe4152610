// Checks that the form shows the scenario of the chosen run, and that no change is lost by choosing another.
#include <QtTest>

#include <QFile>
#include <QLabel>
#include <QTabBar>
#include <QTemporaryDir>
#include <QToolButton>

#include "gui/models/scenario/scenario_difference.hpp"
#include "gui/views/scenario/number_field.hpp"
#include "gui/views/scenario/scenario_editor.hpp"
#include "gui/views/scenario/scenario_form.hpp"
#include "gui/views/scenario/scenario_view.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

QString path_of_shipped(const char* name) {
  return QString("%1/../simulator/scenarios/%2.toml").arg(REHEARSE_TESTS_DIR, name);
}

QString text_of(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

// As traces hold it: without comments.
QString bare(const char* name) {
  QStringList lines;
  for (const QString& line : text_of(path_of_shipped(name)).split('\n'))
    if (const QString kept = line.section('#', 0, 0).trimmed(); !kept.isEmpty()) lines << kept;
  return lines.join('\n') + '\n';
}

struct RunWindow {
  RunWindow() {
    view.resize(1000, 700);
    view.show();
    REQUIRE(QTest::qWaitForWindowExposed(&view, rehearse::test::kPatienceMs));
  }
  int add(const char* name, const QString& text, Run::Source source = Run::Source::predicted) {
    Run run;
    run.name = name;
    run.source = source;
    run.scenario_text = text.toStdString();
    return session.add(std::move(run));
  }
  QStringList tabs() const {
    QStringList names;
    const auto& bar = *view.findChild<QTabBar*>();
    for (int i = 0; i < bar.count(); ++i) names << bar.tabText(i);
    return names;
  }
  QString told() const {
    for (const QLabel* label : view.findChildren<QLabel*>())
      if (label->accessibleName() == "Whose scenario this is" && label->isVisible())
        return label->text().remove("<b>").remove("</b>");
    return {};
  }
  QToolButton* button() const {
    for (QToolButton* button : view.findChildren<QToolButton*>())
      if (button->text() == "Take scenario of run" && button->isVisible()) return button;
    return nullptr;
  }
  void undo() {
    for (QAction* action : view.actions())
      if (action->text() == "&Undo") action->trigger();
  }
  void write_nodes(const char* number) { view.draft().set_number("cluster.nodes", number); }
  QString nodes() const { return view.draft().value("cluster.nodes").value_or(""); }

  Session session;
  ViewState state;
  ScenarioView view{session, state};
};

}  // namespace

TEST_CASE("The form follows the run that is chosen, in one tab") {
  RunWindow w;
  CHECK(w.told().isEmpty());
  const int ring = w.add("ring", bare("resnet50-ring"));
  CHECK(w.view.draft().text() == bare("resnet50-ring"));
  CHECK(w.tabs() == QStringList{"ring"});
  CHECK(w.told() == "Scenario of run ring");
  CHECK(w.button() == nullptr);
  const int mlp = w.add("mlp", bare("mlp-ring"));
  CHECK(w.view.draft().text() == bare("mlp-ring"));
  CHECK(w.tabs() == QStringList{"mlp"});
  w.session.set_current(ring);
  CHECK(w.view.draft().text() == bare("resnet50-ring"));
  CHECK(static_cast<NumberField*>(w.view.form().field("cluster.nodes"))->value() == "8");
  CHECK_FALSE(w.view.has_unsaved_changes());
  w.session.rename(ring, "first");
  CHECK(w.told() == "Scenario of run first");
  CHECK(w.tabs() == QStringList{"first"});
  w.session.remove(ring);
  CHECK(w.told() == "Scenario of run mlp");
  CHECK(w.view.draft().text() == bare("mlp-ring"));
  w.session.remove(mlp);
  CHECK(w.told().isEmpty());
}

TEST_CASE("A run without a scenario leaves the form as it is, and it is said") {
  RunWindow w;
  w.add("ddp", "", Run::Source::profiler);
  CHECK(w.view.has_only_template());
  CHECK(w.told() == "ddp has no scenario: another program wrote its trace");
  CHECK(w.button() == nullptr);
  w.add("mlp", bare("mlp-ring"));
  w.add("old", "");
  CHECK(w.view.draft().text() == bare("mlp-ring"));
  CHECK(w.told() == "old has no scenario: its trace names none; this is that of mlp");
}

TEST_CASE("Changes of a run's scenario stay with the run, and can be undone when it is chosen again") {
  RunWindow w;
  const int ring = w.add("ring", bare("resnet50-ring")), mlp = w.add("mlp", bare("mlp-ring"));
  w.write_nodes("2");
  CHECK(w.told() == "Changed from the scenario of run mlp");
  w.session.set_current(ring);
  CHECK(w.view.draft().text() == bare("resnet50-ring"));
  CHECK(w.tabs() == QStringList{"mlp *", "ring"});
  w.session.set_current(mlp);
  CHECK(w.nodes() == "2");
  CHECK(w.told() == "Changed from the scenario of run mlp");
  // "Take scenario of run" restores the run's own scenario, and undo brings the change back.
  REQUIRE(w.button());
  w.button()->click();
  CHECK(w.view.draft().text() == bare("mlp-ring"));
  CHECK(w.told() == "Scenario of run mlp");
  CHECK_FALSE(w.view.has_unsaved_changes());
  CHECK(w.button() == nullptr);
  w.undo();
  CHECK(w.nodes() == "2");
  w.undo();
  CHECK(w.view.draft().text() == bare("mlp-ring"));
}

TEST_CASE("A scenario of one's own with unsaved changes stays until the run's is taken") {
  const QTemporaryDir folder;
  const QString path = folder.filePath("mine.toml");
  REQUIRE(QFile::copy(path_of_shipped("mlp-ring"), path));
  RunWindow w;
  w.view.open_scenario(path);
  w.write_nodes("2");
  const int ring = w.add("ring", bare("resnet50-ring"));
  CHECK(w.tabs() == QStringList{"mine *"});
  CHECK(w.nodes() == "2");
  CHECK(w.told() == "Not the scenario of run ring");
  REQUIRE(w.button());
  w.button()->click();
  CHECK(w.view.draft().text() == bare("resnet50-ring"));
  CHECK(w.tabs() == QStringList{"mine *", "ring"});
  CHECK(w.told() == "Scenario of run ring");
  // A run is not put in the place of changes of another run's scenario just because it arrives.
  w.write_nodes("4");
  const int third = w.add("third", bare("bert-large-ring"));
  CHECK(w.nodes() == "4");
  CHECK(w.told() == "Not the scenario of run third; changed from that of ring");
  w.session.set_current(ring);
  w.session.set_current(third);
  CHECK(w.view.draft().text() == bare("bert-large-ring"));
  CHECK(w.tabs() == QStringList{"mine *", "ring *", "third"});
}

TEST_CASE("What is being written stays in sight when a run arrives") {
  RunWindow w;
  w.add("ring", bare("resnet50-ring"));
  w.view.activateWindow();
  REQUIRE(QTest::qWaitForWindowActive(&w.view, rehearse::test::kPatienceMs));
  auto& nodes = *static_cast<NumberField*>(w.view.form().field("cluster.nodes"));
  nodes.setFocus();
  nodes.selectAll();
  QTest::keyClicks(&nodes, "3");
  w.add("mlp", bare("mlp-ring"));
  CHECK(w.tabs() == QStringList{"ring"});
  CHECK(nodes.text() == "3");
  QTest::keyClick(&nodes, Qt::Key_Return);
  CHECK(w.nodes() == "3");
  CHECK(w.told() == "Not the scenario of run mlp; changed from that of ring");
}

TEST_CASE("The open file of a run is shown with its comments") {
  RunWindow w;
  w.view.open_scenario(path_of_shipped("mlp-ring"));
  const int mlp = w.add("a trace of it", bare("mlp-ring"));
  CHECK(w.tabs() == QStringList{"mlp-ring"});
  CHECK(w.told() == "Scenario of run a trace of it");
  w.add("ring", bare("resnet50-ring"));
  CHECK(w.tabs() == QStringList{"mlp-ring", "ring"});
  w.session.set_current(mlp);
  CHECK(w.view.draft().path().endsWith("mlp-ring.toml"));
}

TEST_CASE("One thing of an opened trace's scenario is changed and run again") {
  MainWindow window;
  shown(window);
  auto& scenarios = *static_cast<ScenarioView*>(window.view("scenario"));
  window.open_files({servers_trace(), ring_trace()});
  settle(window);
  REQUIRE(window.session().runs().size() == 2);
  CHECK(scenarios.draft().name() == "ring");
  CHECK(differences(text_of(path_of_shipped("resnet50-ring")), scenarios.draft().text()).isEmpty());
  auto& nodes = *static_cast<NumberField*>(scenarios.form().field("cluster.nodes"));
  nodes.setFocus();
  nodes.selectAll();
  QTest::keyClicks(&nodes, "4");
  QTest::keyClick(&window, Qt::Key_R, Qt::ControlModifier);
  REQUIRE(wait_for([&] { return window.session().runs().size() == 3; }));
  settle(window);
  const Run& again = *window.session().runs()[2];
  CHECK(again.name == "ring, nodes 4");
  CHECK(differences(text_of(path_of_shipped("resnet50-ring")), QString::fromStdString(again.scenario_text)) ==
        QStringList{"nodes 4"});
  CHECK(scenarios.findChild<QTabBar*>()->count() == 1);
  CHECK(scenarios.draft().run() == again.id);
  CHECK(scenarios.draft().is_as_run());
  window.session().set_current(window.session().runs()[1]->id);
  CHECK(scenarios.draft().value("cluster.nodes") == "8");
  window.session().set_current(again.id);
  CHECK(scenarios.draft().value("cluster.nodes") == "4");
  // Opening the session restores the draft of the run, and shows the scenario of the same run.
  const QTemporaryDir folder;
  window.session().set_current(window.session().runs()[0]->id);
  const QString shown_text = scenarios.draft().text();
  window.save_session(folder.filePath("work.rehearse"));
  MainWindow other;
  shown(other);
  other.open_files({folder.filePath("work.rehearse")});
  settle(other);
  auto& restored = *static_cast<ScenarioView*>(other.view("scenario"));
  CHECK(restored.draft().text() == shown_text);
  CHECK(restored.findChild<QTabBar*>()->count() == 2);
  window.never_ask();
  other.never_ask();
}
