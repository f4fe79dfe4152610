// Checks the start page: each card opens what it promises, by mouse and by keys; recent files; and the way
// back.
#include <QtTest>

#include <QAction>
#include <QDialog>
#include <QMimeData>
#include <QPushButton>
#include <QSettings>
#include <QStyleHints>
#include <QTemporaryDir>
#include <QToolButton>
#include <QTreeWidget>
#include <fstream>

#include "gui/models/session/recent_files.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/session/example_card.hpp"
#include "gui/views/session/start_page.hpp"
#include "gui/views/tables/accuracy_view.hpp"
#include "gui/views/tables/plan_view.hpp"
#include "gui/views/tables/scaling_view.hpp"
#include "gui/views/trace/record_dialog.hpp"
#include "gui/views/window/main_window.hpp"
#include "gui/views/window/workspace.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

StartPage& page_of(MainWindow& window) {
  return *static_cast<StartPage*>(window.view("start"));
}

ExampleCard& card(MainWindow& window, const QString& name) {
  auto* found = page_of(window).findChild<ExampleCard*>("card " + name);
  REQUIRE(found != nullptr);
  return *found;
}

QAction* command(MainWindow& window, const QString& text) {
  for (QAction* action : window.findChildren<QAction*>())
    if (!menu_of(*action).isEmpty() && QString(action->text()).remove('&') == text) return action;
  return nullptr;
}

QStringList names_of(const std::vector<Session::RunPointer>& runs) {
  QStringList names;
  for (const Session::RunPointer& run : runs) names << QString::fromStdString(run->name);
  return names;
}

}  // namespace

TEST_CASE("Every card of traces opens its runs, fitted, in the view that it promises") {
  struct Case {
    const char* card;
    QStringList runs;
  };
  MainWindow window;
  shown(window);
  CHECK(page_of(window).isVisible());
  CHECK_FALSE(window.view("timeline")->isVisible());
  // Opens one card after the other in one window: only the card's own runs are shown.
  for (const Case& c :
       {Case{"ring", {"resnet50-ring"}}, Case{"servers", {"resnet50-ring", "resnet50-servers"}},
        Case{"pipeline", {"gpt3-175b"}}, Case{"measured", {"predicted", "measured"}}}) {
    CAPTURE(c.card);
    window.show_view("start");
    QTest::mouseClick(&card(window, c.card), Qt::LeftButton);
    settle(window);
    CHECK(window.failures() == 0);
    CHECK(names_of(window.session().shown()) == c.runs);
    CHECK_FALSE(page_of(window).isVisible());
    CHECK(window.view("timeline")->isVisible());
    CHECK(window.view(card(window, c.card).example().view)->isVisible());
    Time longest = 0;
    for (const Session::RunPointer& run : window.session().shown()) {
      CHECK(run->judged);
      longest = std::max(longest, run->figures.step.length());
    }
    CHECK(window.state().visible().length() >= longest);
    CHECK(window.state().visible().length() < longest * 11 / 10);
  }
  // Files that are already open are not read again.
  const std::size_t runs = window.session().runs().size();
  window.show_view("start");
  QTest::mouseClick(&card(window, "servers"), Qt::LeftButton);
  settle(window);
  CHECK(window.session().runs().size() == runs);
  CHECK(names_of(window.session().shown()) == QStringList{"resnet50-ring", "resnet50-servers"});
  CHECK(window.view("compare")->isVisible());
  CHECK(recent_files().empty() == QSettings().value("recent").toStringList().isEmpty());
  for (const RecentFile& file : recent_files()) CHECK_FALSE(file.path.contains("examples"));
}

TEST_CASE("Every card of results opens its table and its plot in all the room") {
  for (const char* name : {"accuracy", "sweep", "plan"}) {
    CAPTURE(name);
    MainWindow window;
    shown(window);
    QTest::mouseClick(&card(window, name), Qt::LeftButton);
    settle(window);
    CHECK(window.failures() == 0);
    CHECK_FALSE(page_of(window).isVisible());
    QWidget* view = window.view(card(window, name).example().view);
    CHECK(view->isVisible());
    CHECK(view->height() > 600);
  }
  MainWindow window;
  shown(window);
  for (const char* name : {"accuracy", "sweep", "plan"}) {
    card(window, name).click();
    settle(window);
  }
  CHECK(static_cast<AccuracyView*>(window.view("accuracy"))->points().size() > 20);
  CHECK(wait_for([&] { return static_cast<ScalingView*>(window.view("scaling"))->curves().size() == 2; }));
  const PlanFile& plans = static_cast<PlanView*>(window.view("plan"))->plans();
  CHECK(plans.plans.size() >= 5);
  for (const FoundPlan& plan : plans.plans)
    if (plan.origin == FoundPlan::Origin::ranked) CHECK(QFile::exists(QString::fromStdString(plan.file)));
}

TEST_CASE("The card of one's own trace tells how to record it, and shows one that was") {
  MainWindow window;
  shown(window);
  card(window, "pytorch").setFocus();
  QTest::keyClick(&card(window, "pytorch"), Qt::Key_Return);
  RecordDialog* dialog = nullptr;
  REQUIRE(wait_for([&] { return (dialog = window.findChild<RecordDialog*>()) != nullptr; }));
  QPushButton* look = nullptr;
  for (QPushButton* button : dialog->findChildren<QPushButton*>())
    if (button->text().contains("recorded")) look = button;
  REQUIRE(look != nullptr);
  look->click();
  settle(window);
  CHECK(window.failures() == 0);
  REQUIRE(window.session().shown().size() == 1);
  CHECK(window.session().current()->source == Run::Source::profiler);
  CHECK(window.session().current()->timeline->processes.size() >= 2);  // both ranks
  CHECK(window.view("timeline")->isVisible());
}

TEST_CASE("Cards have small pictures of what they open") {
  MainWindow window;
  shown(window);
  settle(window);
  REQUIRE(page_of(window).cards().size() == 8);
  for (const ExampleCard* one : page_of(window).cards()) {
    CAPTURE(one->example().name.toStdString());
    REQUIRE(one->has_picture());
    CHECK_FALSE(one->sketch().empty());
    for (const Sketch::Bar& bar : one->sketch().bars) {
      REQUIRE(bar.place.left() >= 0);
      REQUIRE(bar.place.bottom() <= 1.001);
    }
    for (const Sketch::Curve& curve : one->sketch().curves)
      for (const QPointF& point : curve.points) REQUIRE(QRectF(0, 0, 1, 1).contains(point));
  }
  // The sketch shows the wave of the pipeline, with forward and backward passes in different styles.
  const Sketch& pipeline = card(window, "pipeline").sketch();
  for (const Pass pass : {Pass::forward, Pass::backward})
    CHECK(std::count_if(pipeline.bars.begin(), pipeline.bars.end(),
                        [pass](const Sketch::Bar& bar) { return bar.pass == pass; }) >= 48 * 24);
  // Light and dark.
  const QImage light = card(window, "ring").grab().toImage();
  window.set_theme(Theme::dark);
  QApplication::processEvents();
  const QImage dark = card(window, "ring").grab().toImage();
  CHECK(light.pixelColor(light.width() / 2, 5).lightness() > 200);
  CHECK(dark.pixelColor(dark.width() / 2, 5).lightness() < 60);
  window.set_theme(Theme::light);
}

TEST_CASE(
    "A card without its files is left out, and a file that cannot be read is a card without a picture") {
  const QTemporaryDir data;
  REQUIRE(QDir(data.path()).mkdir("examples"));
  std::ofstream(data.filePath("examples/scaling.csv").toStdString()) << "nonsense";
  qputenv("REHEARSE_DATA", data.path().toLocal8Bit());
  const std::vector<Example> there = examples();
  qunsetenv("REHEARSE_DATA");
  REQUIRE(there.size() == 2);
  CHECK(there[0].name == "sweep");
  CHECK(there[1].asks);  // asks for the user's own files
  CHECK(there[1].files.isEmpty());
  CHECK(sketch_of(there[0].files).empty());
  CHECK(sketch_of({}).empty());
}

TEST_CASE("The start page is gone through by keys, and come back to") {
  MainWindow window;
  shown(window, {1280, 800});
  settle(window);
  window.activateWindow();
  REQUIRE(QTest::qWaitForWindowActive(&window, rehearse::test::kPatienceMs));
  REQUIRE(wait_for([&] { return card(window, "ring").hasFocus(); }));
  QTest::keyClick(&card(window, "ring"), Qt::Key_Right);
  CHECK(card(window, "servers").hasFocus());
  QTest::keyClick(&card(window, "servers"), Qt::Key_Down);
  CHECK(card(window, "sweep").hasFocus());
  QTest::keyClick(&card(window, "sweep"), Qt::Key_Up);
  QTest::keyClick(&card(window, "servers"), Qt::Key_Left);
  QTest::keyClick(&card(window, "ring"), Qt::Key_Left);  // there is no card to the left
  CHECK(card(window, "ring").hasFocus());
  QTest::keyClick(&card(window, "ring"), Qt::Key_Tab);
  CHECK(card(window, "servers").hasFocus());
  QTest::keyClick(&card(window, "servers"), Qt::Key_Backtab);
  QTest::keyClick(&card(window, "ring"), Qt::Key_Return);
  settle(window);
  CHECK(window.session().runs().size() == 1);
  QAction* start = command(window, "Start page");
  REQUIRE(start != nullptr);
  QTest::keyClick(&window, Qt::Key_Home, Qt::AltModifier);
  CHECK(page_of(window).isVisible());
  CHECK_FALSE(window.view("timeline")->isVisible());
  start->trigger();
  CHECK(window.view("timeline")->isVisible());
  // When the last run is removed, the page appears again.
  window.session().remove(window.session().current()->id);
  CHECK(page_of(window).isVisible());
  for (const ExampleCard* one : page_of(window).cards()) {
    CHECK_FALSE(one->accessibleName().isEmpty());
    CHECK_FALSE(one->accessibleDescription().isEmpty());
  }
}

TEST_CASE("Recent files tell their kind, folder and time, and open") {
  const QVariant before = QSettings().value("recent"), times = QSettings().value("recent_when");
  QSettings().remove("recent");
  QSettings().remove("recent_when");
  const QTemporaryDir folder;
  const QString scenario = folder.filePath("mine.toml"), gone = folder.filePath("gone.csv");
  QFile::copy(REHEARSE_TESTS_DIR "/../simulator/scenarios/mlp-ring.toml", scenario);
  const QDateTime now(QDate(2026, 3, 5), QTime(14, 5));
  remember_recent(gone, now.addDays(-3));
  remember_recent(ring_trace(), now.addDays(-1));
  remember_recent(scenario, now);
  remember_recent(ring_trace(), now);
  {
    const std::vector<RecentFile> files = recent_files();
    REQUIRE(files.size() == 3);
    CHECK(files[0].path == ring_trace());
    CHECK(files[0].kind == "trace");
    CHECK(files[0].when == now);
    CHECK(files[1].kind == "scenario");
    CHECK(files[2].kind == "table");
    CHECK(told_when(now, now) == "today, 14:05");
    CHECK(told_when(now.addDays(-1), now) == "yesterday");
    CHECK(told_when(now.addDays(-3), now) == "2 Mar 2026");
    CHECK(told_when({}, now).isEmpty());
  }
  MainWindow window;
  shown(window);
  QTreeWidget& recent = page_of(window).recent();
  REQUIRE(recent.topLevelItemCount() == 2);  // files that no longer exist are left out
  CHECK(recent.isVisible());
  CHECK(recent.topLevelItem(0)->text(0) == QFileInfo(ring_trace()).fileName());
  CHECK(recent.topLevelItem(1)->text(3) == folder.path());
  recent.setFocus();
  QTest::keyClick(&recent, Qt::Key_Return);
  settle(window);
  CHECK(window.session().runs().size() == 1);
  CHECK_FALSE(page_of(window).isVisible());
  QSettings().setValue("recent", before);
  QSettings().setValue("recent_when", times);
}

TEST_CASE("The start page leads to one's own files and scenarios") {
  MainWindow window;
  shown(window);
  QToolButton* begin = nullptr;
  QStringList texts;
  for (QToolButton* button : page_of(window).findChildren<QToolButton*>()) {
    texts << button->text();
    if (button->text().startsWith("New scenario")) begin = button;
  }
  CHECK(texts.filter("Open").size() == 1);
  CHECK(texts.filter("Commands").size() == 1);
  REQUIRE(begin != nullptr);
  begin->click();
  CHECK(window.view("scenario")->isAncestorOf(QApplication::focusWidget()));
}

// ----- colours

TEST_CASE("The system's colours are those of the desktop") {
  MainWindow window;
  window.set_theme(Theme::dark);
  const bool dark = desktop_is_dark();
  CHECK(is_dark(QApplication::palette()));  // asking changes nothing
  window.set_theme(Theme::system);
  CHECK(is_dark(window.palette()) == dark);
  CHECK(QApplication::palette().color(QPalette::Window) ==
        palette_of(dark ? Theme::dark : Theme::light).color(QPalette::Window));
  CHECK(command(window, "Colours of the desktop")->isChecked());
#if QT_VERSION >= QT_VERSION_CHECK(6, 8, 0)
  for (const Qt::ColorScheme scheme : {Qt::ColorScheme::Dark, Qt::ColorScheme::Light}) {
    QGuiApplication::styleHints()->setColorScheme(scheme);
    // The offscreen platform ignores the request, because it has no color scheme.
    if (QGuiApplication::styleHints()->colorScheme() != scheme) continue;
    window.set_theme(Theme::system);
    CHECK(is_dark(window.palette()) == (scheme == Qt::ColorScheme::Dark));
  }
  QGuiApplication::styleHints()->unsetColorScheme();
#endif
  window.set_theme(Theme::light);
  CHECK_FALSE(command(window, "Colours of the desktop")->isChecked());
}
