// Checks where the window and its views are placed: on the screen, restored, maximised, and in separate
// windows.
#include <QtTest>

#include <QAction>
#include <QMenu>
#include <QProcess>
#include <QSettings>
#include <QSplitter>
#include <QTabBar>
#include <QTabWidget>
#include <QTemporaryDir>
#include <fstream>

#include "gui/views/parts/command.hpp"
#include "gui/views/timeline/timeline_canvas.hpp"
#include "gui/views/timeline/timeline_view.hpp"
#include "gui/views/window/detached_window.hpp"
#include "gui/views/window/main_window.hpp"
#include "gui/views/window/window_place.hpp"
#include "gui/views/window/workspace.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

// Deletes the remembered layout before and after a test.
struct Unremembered {
  Unremembered() { forget(); }
  ~Unremembered() { forget(); }
  static void forget() {
    for (const char* group : {"window", "layout", "detached"}) QSettings().remove(group);
  }
};

QString write_sweep(const QTemporaryDir& folder) {
  const QString path = folder.filePath("sweep.csv");
  std::ofstream(path.toStdString()) << "point,cluster.nodes,step_time_s,samples_per_s,devices,status,error\n"
                                       "1,1,1,32,4,ok,\n2,2,0.6,53,8,ok,\n";
  return path;
}

QTabWidget& tabs_of(MainWindow& window) {
  return *window.workspace().findChild<QTabWidget*>();
}

void double_click_tab(MainWindow& window, const char* name) {
  const int tab = tabs_of(window).indexOf(window.view(name));
  REQUIRE(tab >= 0);
  QTabBar& bar = *tabs_of(window).tabBar();
  const QPoint at = bar.tabRect(tab).center();
  QTest::mouseClick(&bar, Qt::LeftButton, {}, at);
  QTest::mouseDClick(&bar, Qt::LeftButton, {}, at);
  QApplication::processEvents();
}

}  // namespace

TEST_CASE("A window that is opened for the first time is whole on the screen") {
  for (const QRect screen : {QRect(0, 0, 800, 600), QRect(0, 0, 1024, 700), QRect(0, 30, 1280, 770),
                             QRect(1920, 0, 1920, 1080), QRect(0, 0, 2560, 1440), QRect(0, 0, 5120, 2880)}) {
    CAPTURE(screen.width(), screen.height());
    const QRect place = first_place(screen);
    CHECK(screen.contains(place));
    CHECK(place.width() >= std::min(1280, screen.width() - 8));
    CHECK(place.height() >= std::min(800, screen.height() - 40));
    CHECK(place.height() < screen.height());  // leaves room for the title bar
  }
}

TEST_CASE("A remembered place is moved onto the screen that is there") {
  const QRect screen(0, 0, 1024, 700);
  const QRect fitting(100, 80, 800, 500);
  CHECK(kept_on(screen, fitting) == fitting);
  for (const QRect wanted : {QRect(0, 0, 2560, 1440), QRect(-900, -400, 800, 600),
                             QRect(1900, 1000, 1280, 800), QRect(1000, 650, 500, 400)}) {
    CHECK(screen.contains(kept_on(screen, wanted)));
    CHECK(kept_on(screen, wanted).width() == std::min(wanted.width(), 1016));
  }
}

TEST_CASE("The window opens as it was left") {
  const Unremembered settings;
  QRect place;
  int side = 0;
  {
    MainWindow window;
    window.restore_layout();
    window.show();
    REQUIRE(QTest::qWaitForWindowExposed(&window, rehearse::test::kPatienceMs));
    CHECK(window.screen()->availableGeometry().contains(window.geometry()));
    window.setGeometry(20, 50, 720, 640);
    window.show_view("memory");
    auto& halves = *window.workspace().findChild<QSplitter*>();
    halves.setSizes({200, 520});
    QApplication::processEvents();
    place = window.geometry();
    side = halves.sizes()[0];
    window.close();
  }
  {
    MainWindow window;  // as for a picture: restores no layout and stores none
    window.show();
    CHECK(window.size() == QSize(1280, 800));
    CHECK(tabs_of(window).currentWidget() == window.view("why"));
    window.close();
  }
  MainWindow window;
  window.restore_layout();
  window.show();
  REQUIRE(QTest::qWaitForWindowExposed(&window, rehearse::test::kPatienceMs));
  CHECK(window.geometry() == place);
  CHECK(tabs_of(window).currentWidget() == window.view("memory"));
  CHECK(window.workspace().findChild<QSplitter*>()->sizes()[0] == side);
  // A layout from a larger screen than the present one.
  QSettings().setValue("window/place", QRect(3000, 2000, 5000, 4000));
  MainWindow other;
  other.restore_layout();
  CHECK(other.screen()->availableGeometry().contains(other.geometry()));
}

TEST_CASE("The whole window fits a screen of 1024 x 700") {
  MainWindow window;
  shown(window, {1024, 660});
  window.open_files({ring_trace()});
  settle(window);
  for (const QString& name : MainWindow::view_names()) {
    window.show_view(name);
    QApplication::processEvents();
    const QWidget* view = name == "window" ? &window : window.view(name);
    CAPTURE(name.toStdString(), view->minimumSizeHint().width(), view->minimumSizeHint().height());
    CHECK(window.minimumSizeHint().width() <= 1000);
    CHECK(window.minimumSizeHint().height() <= 640);
    CHECK(window.size() == QSize(1024, 660));
  }
}

TEST_CASE("Results have the room of the timeline until a run is open") {
  const QTemporaryDir folder;
  MainWindow window;
  shown(window);
  window.open_files({write_sweep(folder)});
  settle(window);
  CHECK(window.view("scaling")->isVisible());
  CHECK_FALSE(window.view("timeline")->isVisible());
  CHECK(window.view("scaling")->height() > 600);
  window.open_files({ring_trace()});
  settle(window);
  CHECK(window.view("timeline")->isVisible());
  CHECK(window.view("timeline")->height() > 300);
  window.session().remove(window.session().current()->id);
  CHECK_FALSE(window.view("timeline")->isVisible());
  window.show_view("timeline");  // the user asks for it
  CHECK(window.view("timeline")->isVisible());
}

TEST_CASE("A double click on a tab gives it all the room, and another gives it back") {
  MainWindow window;
  shown(window);
  window.open_files({ring_trace()});
  settle(window);
  window.show_view("memory");
  QApplication::processEvents();
  const int height = window.view("memory")->height();
  double_click_tab(window, "memory");
  CHECK(window.view("memory")->isVisible());
  CHECK_FALSE(window.view("timeline")->isVisible());
  CHECK_FALSE(window.view("runs")->isVisible());
  CHECK(window.view("memory")->width() > 1200);
  // Other tabs stay maximised; showing a view outside the tabs restores the layout.
  window.show_view("table");
  CHECK(window.view("table")->width() > 1200);
  window.show_view("memory");
  double_click_tab(window, "memory");
  CHECK(window.view("timeline")->isVisible());
  CHECK(window.view("runs")->isVisible());
  CHECK(std::abs(window.view("memory")->height() - height) <= 60);

  auto& timeline = *static_cast<TimelineView*>(window.view("timeline"));
  timeline.canvas().setFocus();
  QTest::keyClick(&timeline.canvas(), Qt::Key_M, Qt::ControlModifier);
  CHECK(window.workspace().maximised() == &timeline);
  CHECK_FALSE(window.view("memory")->isVisible());
  QApplication::processEvents();
  CHECK(timeline.height() > 700);
  QTest::keyClick(&timeline.canvas(), Qt::Key_F12);
  CHECK(window.workspace().maximised() == nullptr);
  CHECK(window.view("memory")->isVisible());
  window.workspace().maximise(window.view("scenario"));
  QApplication::processEvents();
  CHECK(window.view("scenario")->width() > 1200);
  CHECK_FALSE(window.view("runs")->isVisible());
  window.show_view("why");
  CHECK(window.view("runs")->isVisible());
  CHECK(window.view("why")->isVisible());
}

TEST_CASE("A view has a window of its own until that is closed") {
  const Unremembered settings;
  MainWindow window;
  shown(window);
  window.open_files({ring_trace()});
  settle(window);
  const int tabs = tabs_of(window).count();
  const int place = tabs_of(window).indexOf(window.view("table"));
  for (const char* name : {"table", "timeline", "runs"}) {
    CAPTURE(name);
    QWidget* view = window.view(name);
    window.workspace().detach(view);
    CHECK(window.workspace().is_detached(view));
    CHECK(qobject_cast<DetachedWindow*>(view->window()) != nullptr);
    CHECK(view->isVisible());
    window.show_view(name);  // brings its window to the front
    CHECK(window.workspace().is_detached(view));
  }
  CHECK(tabs_of(window).count() == tabs - 1);
  CHECK(tabs_of(window).height() > 600);
  // The main window's shortcuts also work in a detached window, and the main window shows the result.
  QWidget* table = window.view("table");
  table->window()->activateWindow();
  REQUIRE(QTest::qWaitForWindowActive(table->window(), rehearse::test::kPatienceMs));
  QTest::keyClick(table->window(), Qt::Key_6, Qt::ControlModifier);
  CHECK(tabs_of(window).currentWidget()->isVisible());
  table->window()->resize(777, 555);
  for (const char* name : {"table", "timeline", "runs"}) window.view(name)->window()->close();
  for (const char* name : {"table", "timeline", "runs"}) {
    CHECK(window.view(name)->window() == &window);
    CHECK(window.view(name)->isVisibleTo(&window));
  }
  CHECK(tabs_of(window).indexOf(window.view("table")) == place);
  CHECK(tabs_of(window).count() == tabs);
  CHECK(window.view("timeline")->y() < tabs_of(window).y());
  // It reappears where it was; closing the main window closes the detached one.
  window.workspace().detach(table);
  CHECK(table->window()->size() == QSize(777, 555));
  window.close();
  CHECK(table->window() == &window);
}

TEST_CASE("A detached view goes with the window") {
  const Unremembered settings;
  auto window = std::make_unique<MainWindow>();
  shown(*window);
  window->workspace().detach(window->view("plan"));
  const QPointer<QWidget> plan = window->view("plan");
  window.reset();
  CHECK(plan.isNull());
}

TEST_CASE("No menu is longer than one can look over") {
  MainWindow window;
  shown(window);
  for (const QMenu* menu : window.findChildren<QMenu*>()) {
    int entries = 0;
    for (const QAction* action : menu->actions()) entries += action->isSeparator() ? 0 : 1;
    CAPTURE(menu->title().toStdString(), entries);
    CHECK(entries <= 15);
  }
}

TEST_CASE("A picture neither reads nor writes how the window lies") {
  const QTemporaryDir settings;
  const QString kept = settings.filePath("rehearse/rehearse-gui.conf");
  REQUIRE(QDir(settings.path()).mkdir("rehearse"));
  const std::string before = "[layout]\nshows_side=false\ntab=memory\n\n[window]\nplace=@Rect(0 0 300 300)\n";
  std::ofstream(kept.toStdString()) << before;
  QProcess process;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("XDG_CONFIG_HOME", settings.path());
  process.setProcessEnvironment(environment);
  const QString one = settings.filePath("one.png"), other = settings.filePath("other.png");
  const QStringList arguments = {"--size", "1000x600", "--scale", "1", "--screenshot"};
  process.start(REHEARSE_BIN_DIR "/rehearse-gui", arguments + QStringList{one});
  REQUIRE(process.waitForFinished(rehearse::test::kPatienceMs));
  CHECK(process.exitCode() == 0);
  std::ifstream file(kept.toStdString());
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == before);
  CHECK(QImage(one).size() == QSize(1000, 600));
  QFile::remove(kept);
  process.start(REHEARSE_BIN_DIR "/rehearse-gui", arguments + QStringList{other});
  REQUIRE(process.waitForFinished(rehearse::test::kPatienceMs));
  CHECK_FALSE(QFile::exists(kept));
  CHECK(QImage(one) == QImage(other));
}
