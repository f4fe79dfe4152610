// Checks which view is exported, and that its picture is complete.
#include <QtTest>

#include <QFileDialog>
#include <QHeaderView>
#include <QLineEdit>
#include <QScrollBar>
#include <QTabBar>
#include <QTabWidget>
#include <QTableView>
#include <QTemporaryDir>
#include <QTimer>

#include "gui/views/parts/export.hpp"
#include "gui/views/timeline/timeline_canvas.hpp"
#include "gui/views/timeline/timeline_view.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

void click_tab(const MainWindow& window, const QString& title) {
  auto* tabs = window.findChild<QTabWidget*>();
  for (int tab = 0; tab < tabs->count(); ++tab)
    if (tabs->tabText(tab) == title) {
      QTest::mouseClick(tabs->tabBar(), Qt::LeftButton, {}, tabs->tabBar()->tabRect(tab).center());
      return;
    }
  FAIL("no such tab");
}

// Triggers the action and chooses the file in the dialog that it opens.
void export_to(MainWindow& window, const QString& text, const QString& path) {
  QTimer::singleShot(0, &window, [path] {
    auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    if (dialog == nullptr) return;
    dialog->selectFile(path);
    static_cast<QDialog*>(dialog)->done(QDialog::Accepted);
  });
  for (QAction* action : window.actions())
    if (action->text().contains(text)) return action->trigger();
  FAIL("no such action");
}

}  // namespace

TEST_CASE("The tab that was clicked is exported, though the timeline has the focus") {
  MainWindow window;
  shown(window);
  window.open_files({ring_trace()});
  settle(window);
  auto* timeline = static_cast<TimelineView*>(window.view("timeline"));
  timeline->canvas().setFocus();
  CHECK(window.exported_view() == timeline);
  for (const char* title : {"Memory", "Table", "Topology"}) {
    click_tab(window, title);
    CHECK(window.exported_view()->objectName() == QString(title).toLower());
  }
  click_tab(window, "Table");
  auto* table = window.view("table")->findChild<QTableView*>();
  REQUIRE(wait_for([&] { return table->model()->rowCount() > 0; }));
  CHECK(window.exported_table() == table);
  timeline->canvas().setFocus(Qt::TabFocusReason);
  QTest::mouseClick(&timeline->canvas(), Qt::LeftButton, {}, {5, 5});
  CHECK(window.exported_view() == timeline);
  QTest::mouseClick(window.view("runs")->findChild<QAbstractItemView*>()->viewport(), Qt::LeftButton);
  CHECK(window.exported_view() == window.view("runs"));
  timeline->canvas().setFocus();
  CHECK(window.exported_view() == timeline);
  CHECK(window.exported_table() == table);  // the open tab's table, since a timeline has none

  const QTemporaryDir folder;
  const QString path = folder.filePath("ops.csv");
  export_to(window, "table as CSV", path);
  QFile file(path);
  REQUIRE(file.open(QIODevice::ReadOnly));
  CHECK(file.readAll().startsWith("op,kind,count"));
  CHECK(window.failures() == 0);
}

TEST_CASE("A picture has all rows, and neither search boxes nor scroll bars") {
  MainWindow window;
  shown(window, {1024, 700});
  window.open_files({pipeline_trace()});
  settle(window);
  auto* timeline = static_cast<TimelineView*>(window.view("timeline"));
  REQUIRE(wait_for([&] { return timeline->scene().ready(); }));
  QTest::keyClick(&timeline->canvas(), Qt::Key_E, Qt::ShiftModifier);  // all tracks
  QScrollBar* bar = nullptr;
  for (auto* candidate : timeline->findChildren<QScrollBar*>())
    if (candidate->maximum() > 0) bar = candidate;
  REQUIRE(bar != nullptr);  // eight stages do not fit
  bar->setValue(bar->maximum() / 2);
  const QRect before = timeline->geometry();
  const int scrolled = bar->value(), hidden = bar->maximum();
  {
    const Unrolled whole(*timeline);
    CHECK_FALSE(whole.cut());
    CHECK(bar->maximum() == 0);
    CHECK_FALSE(bar->isVisible());
    CHECK_FALSE(timeline->search_field().isVisible());
    CHECK(timeline->height() > before.height());
    CHECK(picture_of(*timeline, 1).height() == timeline->height());
  }
  CHECK(timeline->geometry() == before);
  CHECK(bar->isVisible());
  CHECK(bar->maximum() == hidden);
  CHECK(bar->value() == scrolled);
  CHECK(timeline->search_field().isVisible());

  window.show_view("table");
  auto* view = window.view("table");
  auto* table = view->findChild<QTableView*>();
  REQUIRE(wait_for([&] { return table->model()->rowCount() > 3; }));
  window.resize(1024, 500);
  QApplication::processEvents();
  {
    const Unrolled whole(*view);
    CHECK(table->viewport()->height() >= table->verticalHeader()->length());
    CHECK(table->viewport()->width() >= table->horizontalHeader()->length());
    CHECK_FALSE(view->findChild<QLineEdit*>()->isVisible());
  }
  const Unrolled cut(*timeline, {2'000, before.height() + 10});
  CHECK(cut.cut());
  CHECK(timeline->height() == before.height() + 10);
}
