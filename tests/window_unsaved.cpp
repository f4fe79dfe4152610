// Checks that changes of scenarios are not lost: the window asks, and sessions store them.
#include <QtTest>

#include <QAbstractButton>
#include <QAbstractSpinBox>
#include <QFileDialog>
#include <QLineEdit>
#include <QMessageBox>
#include <QTabBar>
#include <fstream>

#include "gui/views/scenario/scenario_form.hpp"
#include "gui/views/scenario/scenario_view.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

ScenarioView& scenarios_of(MainWindow& window) {
  return *static_cast<ScenarioView*>(window.view("scenario"));
}

QString shipped(const QString& name) {
  return QString("%1/../simulator/scenarios/%2.toml").arg(REHEARSE_TESTS_DIR, name);
}

QString text_of(const QString& path) {
  std::ifstream file(path.toStdString());
  return QString::fromStdString(std::string(std::istreambuf_iterator<char>(file), {}));
}

QString copied(const QString& name, const QTemporaryDir& folder) {
  const QString path = folder.filePath(name + ".toml");
  std::ofstream(path.toStdString()) << text_of(shipped(name)).toStdString();
  return path;
}

// Answers all questions during its lifetime as soon as they appear.
class Answers {
public:
  explicit Answers(QMessageBox::StandardButton given) : button(given) {
    timer_.setInterval(5);
    QObject::connect(&timer_, &QTimer::timeout, [this] { answer(); });
    timer_.start();
  }
  QMessageBox::StandardButton button;
  QString file;  // to save to; empty: no file is chosen
  QStringList asked;

private:
  void answer() {
    QWidget* modal = QApplication::activeModalWidget();
    if (auto* box = qobject_cast<QMessageBox*>(modal)) {
      asked << box->text() + '\n' + box->informativeText();
      QTest::mouseClick(box->button(button), Qt::LeftButton);
    } else if (auto* files = qobject_cast<QFileDialog*>(modal)) {
      asked << files->windowTitle();
      if (file.isEmpty()) return files->reject();
      auto* name = files->findChild<QLineEdit*>();
      name->setText(file);
      QTest::keyClick(name, Qt::Key_Return);
    }
  }
  QTimer timer_;
};

void change(ScenarioView& scenarios, const char* from, const char* to) {
  QTextCursor cursor = scenarios.draft().document().find(from);
  REQUIRE_FALSE(cursor.isNull());
  cursor.insertText(to);
}

// Changes two scenarios: mlp-ring, which has a file in `folder`, and "plain" without one.
void change_two(MainWindow& window, const QTemporaryDir& folder) {
  ScenarioView& scenarios = scenarios_of(window);
  scenarios.open_scenario(copied("mlp-ring", folder));
  change(scenarios, "micro_batch = 16", "micro_batch = 8");
  scenarios.set_text(text_of(shipped("resnet50-ring")), "plain");
  change(scenarios, "nodes = 8", "nodes = 4");
}

}  // namespace

TEST_CASE("A window with changed scenarios asks before it closes, and stays if so told") {
  const QTemporaryDir folder;
  MainWindow window;
  shown(window);
  change_two(window, folder);
  Answers answers(QMessageBox::Cancel);
  QTest::keyClick(&window, Qt::Key_Q, Qt::ControlModifier);
  REQUIRE(answers.asked.size() == 1);
  CHECK(answers.asked[0].startsWith("Save the changes of 2 scenarios?\nmlp-ring\nplain\n"));
  CHECK(window.isVisible());
  CHECK(scenarios_of(window).has_unsaved_changes());
  CHECK(text_of(folder.filePath("mlp-ring.toml")).contains("micro_batch = 16"));
  // Saving can be cancelled, too.
  answers.button = QMessageBox::SaveAll;
  CHECK_FALSE(window.close());
  CHECK(answers.asked.last() == "Save the scenario plain");
  CHECK(window.isVisible());
  CHECK(scenarios_of(window).has_unsaved_changes());
}

TEST_CASE("Changed scenarios are saved when the window closes, those without a file under a name") {
  const QTemporaryDir folder;
  MainWindow window;
  shown(window);
  change_two(window, folder);
  Answers answers(QMessageBox::SaveAll);
  answers.file = folder.filePath("named.toml");
  CHECK(window.close());
  CHECK(text_of(folder.filePath("mlp-ring.toml")).contains("micro_batch = 8"));
  CHECK(text_of(answers.file).contains("nodes = 4"));
}

TEST_CASE("A scenario that cannot be saved keeps the window open") {
  const QTemporaryDir folder;
  MainWindow window;
  shown(window);
  scenarios_of(window).set_text(text_of(shipped("mlp-ring")), "plain");
  change(scenarios_of(window), "micro_batch = 16", "micro_batch = 8");
  scenarios_of(window).draft().restore(folder.filePath("gone/plain.toml"), {}, "[model]\n");
  Answers answers(QMessageBox::Save);
  change(scenarios_of(window), "[model]", "[training]");
  CHECK_FALSE(window.close());
  CHECK(answers.asked.size() == 1);
  CHECK(window.notices().last().contains("gone/plain.toml: cannot be written: "));
  answers.button = QMessageBox::Discard;
  CHECK(window.close());
}

TEST_CASE("What is not changed is not asked about") {
  const QTemporaryDir folder;
  MainWindow window;
  shown(window);
  scenarios_of(window).open_scenario(copied("mlp-ring", folder));
  scenarios_of(window).set_text(text_of(shipped("resnet50-ring")), "plain");
  const Answers answers(QMessageBox::Cancel);
  CHECK(window.close());
  CHECK(answers.asked.isEmpty());
}

TEST_CASE("A changed scenario asks before it is closed") {
  MainWindow window;
  shown(window);
  ScenarioView& scenarios = scenarios_of(window);
  auto& tabs = *scenarios.findChild<QTabBar*>();
  scenarios.set_text(text_of(shipped("mlp-ring")), "plain");
  scenarios.set_text(text_of(shipped("mlp-ring")), "other");
  change(scenarios, "micro_batch = 16", "micro_batch = 8");
  QWidget& inside = *scenarios.form().field("cluster.nodes");
  inside.setFocus();
  Answers answers(QMessageBox::Cancel);
  QTest::keyClick(&inside, Qt::Key_W, Qt::ControlModifier);
  REQUIRE(answers.asked.size() == 1);
  CHECK(answers.asked[0].startsWith("Save the changes of other?"));
  CHECK(tabs.count() == 2);
  answers.button = QMessageBox::Discard;
  emit tabs.tabCloseRequested(1);
  CHECK(answers.asked.size() == 2);
  CHECK(tabs.count() == 1);
  emit tabs.tabCloseRequested(0);  // unchanged
  CHECK(answers.asked.size() == 2);
  CHECK(scenarios.has_only_template());
}

TEST_CASE("A session keeps the scenarios as they are being written") {
  const QTemporaryDir folder;
  const QString path = folder.filePath("work.rehearse");
  QString changed, plain;
  {
    MainWindow window;
    shown(window);
    change_two(window, folder);
    scenarios_of(window).open_scenario(folder.filePath("mlp-ring.toml"));  // already open
    ScenarioView& scenarios = scenarios_of(window);
    changed = scenarios.draft().text();
    scenarios.run();
    REQUIRE(wait_for([&] { return window.session().runs().size() == 1; }));
    settle(window);
    window.save_session(path);
    plain = text_of(shipped("resnet50-ring")).replace("nodes = 8", "nodes = 4");
    // Closing would lose nothing now.
    const Answers answers(QMessageBox::Cancel);
    CHECK(window.close());
    CHECK(answers.asked.isEmpty());
  }
  MainWindow window;
  shown(window);
  window.open_files({path});
  settle(window);
  CHECK(window.failures() == 0);
  ScenarioView& scenarios = scenarios_of(window);
  auto& tabs = *scenarios.findChild<QTabBar*>();
  REQUIRE(tabs.count() == 2);
  CHECK(tabs.tabText(0) == "mlp-ring *");
  CHECK(tabs.tabText(1) == "plain *");
  CHECK(tabs.currentIndex() == 0);
  CHECK(scenarios.draft().path() == folder.filePath("mlp-ring.toml"));
  CHECK(scenarios.draft().text() == changed);
  CHECK(qobject_cast<QAbstractSpinBox*>(scenarios.form().field("training.micro_batch"))->text() == "8");
  // The run belongs to the text.
  REQUIRE(window.session().runs().size() == 1);
  CHECK(window.session().runs()[0]->scenario_text.find("micro_batch = 8") != std::string::npos);
  tabs.setCurrentIndex(1);
  CHECK(scenarios.draft().text() == plain);
  CHECK(scenarios.draft().path().isEmpty());
  CHECK(scenarios.draft().is_modified());
}

TEST_CASE("Another session asks before it takes the place of changed scenarios") {
  const QTemporaryDir folder;
  const QString path = folder.filePath("other.rehearse"), older = folder.filePath("older.rehearse");
  copied("mlp-ring", folder);
  std::ofstream(older.toStdString()) << R"({"rehearse_session": 1, "runs": [], "current": -1,
    "scenario": "mlp-ring.toml", "visible": {"begin_ns": 0, "end_ns": 0}, "bookmarks": [], "grouping": "none",
    "filter": "", "critical_path": false, "flows": true, "counters": true, "collapsed": [], "pinned": []})";
  MainWindow window;
  shown(window);
  ScenarioView& scenarios = scenarios_of(window);
  window.save_session(path);  // nothing is open
  scenarios.set_text(text_of(shipped("resnet50-ring")), "plain");
  change(scenarios, "nodes = 8", "nodes = 4");
  Answers answers(QMessageBox::Cancel);
  window.open_files({older});
  REQUIRE(answers.asked.size() == 1);
  CHECK(scenarios.draft().name() == "plain");
  answers.button = QMessageBox::Discard;
  window.open_files({older});
  CHECK(scenarios.draft().name() == "mlp-ring");
  CHECK_FALSE(scenarios.has_unsaved_changes());
  window.open_files({path});
  CHECK(answers.asked.size() == 2);
  CHECK(scenarios.has_only_template());
  CHECK(window.failures() == 0);
  // A missing file is reported.
  QFile::remove(folder.filePath("mlp-ring.toml"));
  window.open_files({older});
  CHECK(window.failures() == 1);
  CHECK(window.notices().last().contains("mlp-ring.toml: there is no such file"));
  CHECK(scenarios.has_only_template());
}

TEST_CASE("A window that is never to ask closes over changes") {
  const QTemporaryDir folder;
  MainWindow window;
  shown(window);
  change_two(window, folder);
  window.never_ask();
  CHECK(window.close());
}
